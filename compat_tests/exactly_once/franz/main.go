// A transactional writer and a read_committed reader of the checker, with franz-go: client franz|franzreader NAME
// TRANSACTIONAL_ID BOOTSTRAP DIRECTORY. They do and tell what `write` and `read` of ../clients.py do and tell. At the
// first error the process ends.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions         = 3
	largestTransaction = 30
	monotonic          = 1 // CLOCK_MONOTONIC, which is Python's time.monotonic()
)

var (
	topic   = os.Getenv("CLIENTS_PREFIX") + "written"
	padding = " " + strings.Repeat(".", 1000)
	ctx     = context.Background()
)

type event map[string]any

type client struct {
	name, transactionalID, bootstrap string
	file                             *os.File
	before                           []event
	stopped                          chan os.Signal
}

func main() {
	client := open(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	signal.Notify(client.stopped, syscall.SIGTERM)
	if os.Args[1] == "franz" {
		client.write()
	} else {
		client.read()
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func now() float64 {
	var at syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0)
	return float64(at.Sec) + float64(at.Nsec)/1e9
}

// The client's file, without a last line that a kill has cut off.
func open(name, transactionalID, bootstrap, directory string) *client {
	path := directory + "/" + name
	content, _ := os.ReadFile(path)
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	made := &client{name: name, transactionalID: transactionalID, bootstrap: bootstrap, stopped: make(chan os.Signal, 1)}
	for _, line := range bytes.Split(content, []byte("\n")) {
		one := event{}
		if json.Unmarshal(line, &one) == nil {
			made.before = append(made.before, one)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	check(err)
	check(file.Truncate(int64(len(content))))
	made.file = file
	return made
}

func (c *client) tell(one event) {
	one["at"] = now()
	line, err := json.Marshal(one)
	check(err)
	_, err = c.file.Write(append(line, '\n'))
	check(err)
}

func (c *client) isStopped() bool {
	return len(c.stopped) > 0
}

func (c *client) connect(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(c.bootstrap, ",")...), kgo.ClientID(c.name))...)
	check(err)
	return made
}

func (c *client) write() {
	number := 0
	for _, one := range c.before {
		if begun, ok := one["begin"].(float64); ok {
			number = int(begun) + 1
		}
	}
	producer := c.connect(
		kgo.TransactionalID(c.transactionalID),
		kgo.TransactionTimeout(time.Minute),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(2*time.Millisecond),
	)
	claimed := now()
	_, _, err := producer.ProducerID(ctx)
	check(err)
	c.tell(event{"owns": c.transactionalID, "claimed": claimed})
	// How long it rests between transactions, where others need the machine too.
	rest, _ := time.ParseDuration(os.Getenv("CLIENTS_REST") + "s")
	for ; !c.isStopped(); number++ {
		time.Sleep(rest)
		c.transaction(producer, number)
	}
}

func (c *client) transaction(producer *kgo.Client, number int) {
	sent := [][2]int{}
	for index := range 1 + rand.Intn(largestTransaction) {
		sent = append(sent, [2]int{rand.Intn(partitions), index})
	}
	c.tell(event{"begin": number, "sent": sent})
	check(producer.BeginTransaction())
	for _, each := range sent {
		value := fmt.Sprintf("%s %d %d%s", c.name, number, each[1], padding)
		record := &kgo.Record{Topic: topic, Partition: int32(each[0]), Value: []byte(value)}
		producer.Produce(ctx, record, func(_ *kgo.Record, err error) { check(err) })
	}
	check(producer.Flush(ctx))
	time.Sleep(time.Duration(rand.Intn(3)*5) * time.Millisecond)
	if rand.Intn(5) == 0 {
		check(producer.EndTransaction(ctx, kgo.TryAbort))
		c.tell(event{"aborted": number})
		return
	}
	c.tell(event{"committing": number})
	check(producer.EndTransaction(ctx, kgo.TryCommit))
	c.tell(event{"committed": number})
}

func (c *client) read() {
	positions := map[int32]int64{0: 0, 1: 0, 2: 0}
	for _, one := range c.before {
		reads, _ := one["reads"].([]any)
		for _, each := range reads {
			read := each.([]any)
			positions[int32(read[0].(float64))] = int64(read[1].(float64)) + 1
		}
	}
	offsets := map[int32]kgo.Offset{}
	for partition, position := range positions {
		offsets[partition] = kgo.NewOffset().At(position)
	}
	consumer := c.connect(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
	for !c.isStopped() {
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := consumer.PollFetches(limited)
		cancel()
		reads := []any{}
		fetches.EachRecord(func(record *kgo.Record) {
			words := strings.Join(strings.Fields(string(record.Value))[:3], " ")
			reads = append(reads, []any{record.Partition, record.Offset, words})
		})
		if len(reads) > 0 {
			c.tell(event{"reads": reads})
		}
	}
}
