// Package ends is how both programs come to one: with a word of what went wrong.
package ends

import (
	"fmt"
	"os"
	"strconv"
)

// Number is the number that an argument has to be.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	Check(err)
	return n
}

// Check ends the program if there is an error.
func Check(err error) {
	if err != nil {
		Fail(err)
	}
}

// Fail ends the program.
func Fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}
