// sarama: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"

	"blumfeld/clients/ends"
)

func main() {
	if len(os.Args) < 5 {
		ends.Fail("usage: sarama COMMAND BOOTSTRAP TOPIC ...")
	}
	brokers, topic, rest := strings.Split(os.Args[2], ","), os.Args[3], os.Args[4:]
	switch os.Args[1] {
	case "create":
		create(brokers, topic, ends.Number(rest[0]))
	case "produce":
		produce(brokers, topic, rest[0], ends.Number(rest[1]))
	case "consume":
		consume(brokers, topic, int32(ends.Number(rest[0])), int64(ends.Number(rest[1])))
	case "group":
		group(brokers, topic, rest[0], rest[1:])
	default:
		ends.Fail("unknown command", os.Args[1])
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = "sarama"
	config.Version = sarama.V3_6_0_0
	return config
}

func create(brokers []string, topic string, partitions int) {
	admin, err := sarama.NewClusterAdmin(brokers, settings())
	ends.Check(err)
	defer admin.Close()
	ends.Check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false))
}

func produce(brokers []string, topic, codec string, count int) {
	codecs := map[string]sarama.CompressionCodec{
		"none":   sarama.CompressionNone,
		"gzip":   sarama.CompressionGZIP,
		"snappy": sarama.CompressionSnappy,
		"lz4":    sarama.CompressionLZ4,
		"zstd":   sarama.CompressionZSTD,
	}
	config := settings()
	config.Producer.Compression = codecs[codec]
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(brokers, config)
	ends.Check(err)
	defer producer.Close()
	var messages []*sarama.ProducerMessage
	for i := 0; i < count; i++ {
		key := fmt.Sprintf("%s-%d", codec, i)
		value := key + " " + strings.Repeat("all work and no play ", 20)
		message := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key), Value: sarama.StringEncoder(value)}
		messages = append(messages, message)
	}
	ends.Check(producer.SendMessages(messages))
}

func consume(brokers []string, topic string, partition int32, end int64) {
	consumer, err := sarama.NewConsumer(brokers, settings())
	ends.Check(err)
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	ends.Check(err)
	defer reader.Close()
	for position := int64(0); position < end; {
		select {
		case r := <-reader.Messages():
			if r.Offset < end {
				fmt.Printf("%d\t%s\t%s\n", r.Offset, r.Key, r.Value)
			}
			position = r.Offset + 1
		case <-time.After(90 * time.Second):
			ends.Fail("nothing came after offset", position)
		}
	}
}

// A member of a group, until it is asked to end. The library sends marked offsets in the background and tells only
// failures, so what is committed is not printed: the last commit of a session is made when its claims end.
func group(brokers []string, topic, name string, instance []string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := settings()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Return.Errors = true
	if len(instance) > 0 {
		config.Consumer.Group.InstanceId = instance[0]
		config.Consumer.Group.Session.Timeout = 30 * time.Second
	}
	member, err := sarama.NewConsumerGroup(brokers, name, config)
	ends.Check(err)
	defer member.Close()
	go func() {
		for err := range member.Errors() {
			fmt.Printf("failed\t%v\n", err)
		}
	}()
	for ctx.Err() == nil {
		if err := member.Consume(ctx, []string{topic}, reader{}); errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		} else if err != nil {
			// A broker may be gone for a while; the library gives up after some tries.
			fmt.Printf("failed\t%v\n", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case r, more := <-claim.Messages():
			if !more {
				return nil
			}
			fmt.Printf("read\t%d\t%d\n", r.Partition, r.Offset)
			session.MarkMessage(r, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
