// franz-go: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blumfeld/clients/ends"
)

func main() {
	if len(os.Args) < 5 {
		ends.Fail("usage: franz COMMAND BOOTSTRAP TOPIC ...")
	}
	if os.Args[1] == "group" {
		group(os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	bootstrap, topic, rest := os.Args[2], os.Args[3], os.Args[4:]
	switch os.Args[1] {
	case "create":
		create(ctx, bootstrap, topic, ends.Number(rest[0]))
	case "produce":
		produce(ctx, bootstrap, topic, rest[0], ends.Number(rest[1]))
	case "consume":
		consume(ctx, bootstrap, topic, int32(ends.Number(rest[0])), int64(ends.Number(rest[1])))
	default:
		ends.Fail("unknown command", os.Args[1])
	}
}

func create(ctx context.Context, bootstrap, topic string, partitions int) {
	client := connect(seeds(bootstrap))
	defer client.Close()
	_, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
	ends.Check(err)
}

func produce(ctx context.Context, bootstrap, topic, codec string, count int) {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	client := connect(seeds(bootstrap), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(20*time.Millisecond))
	defer client.Close()
	var records []*kgo.Record
	for i := 0; i < count; i++ {
		key := fmt.Sprintf("%s-%d", codec, i)
		value := key + " " + strings.Repeat("all work and no play ", 20)
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)})
	}
	ends.Check(client.ProduceSync(ctx, records...).FirstErr())
}

func consume(ctx context.Context, bootstrap, topic string, partition int32, end int64) {
	client := connect(seeds(bootstrap), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtStart()},
	}))
	defer client.Close()
	for position := int64(0); position < end; {
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			ends.Check(e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < end {
				fmt.Printf("%d\t%s\t%s\n", r.Offset, r.Key, r.Value)
			}
			position = r.Offset + 1
		})
	}
}

// A member of a group, until it is asked to end: every record it reads, and every offset that it has committed.
func group(bootstrap, topic, name string, instance []string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	session := 6 * time.Second
	if len(instance) > 0 {
		session = 30 * time.Second
	}
	options := []kgo.Opt{seeds(bootstrap), kgo.ConsumerGroup(name), kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(500 * time.Millisecond)}
	if len(instance) > 0 {
		options = append(options, kgo.InstanceID(instance[0]))
	}
	client := connect(options...)
	defer client.Close()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 20)
		ends := map[int32]int64{}
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Printf("read\t%d\t%d\n", r.Partition, r.Offset)
			ends[r.Partition] = r.Offset + 1
		})
		if len(ends) == 0 {
			continue
		}
		if err := client.CommitRecords(ctx, fetches.Records()...); err != nil {
			fmt.Printf("failed\t%v\n", err)
			continue
		}
		for partition, end := range ends {
			fmt.Printf("committed\t%d\t%d\n", partition, end)
		}
	}
}

func seeds(bootstrap string) kgo.Opt {
	return kgo.SeedBrokers(strings.Split(bootstrap, ",")...)
}

func connect(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	ends.Check(err)
	return client
}
