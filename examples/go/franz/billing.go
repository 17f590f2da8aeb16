// Package franz is a program on franz-go that is tested: it reads orders, and writes an invoice for each.
package franz

import (
	"context"
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Order is what a customer has ordered.
type Order struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

// Invoice is what a customer has to pay.
type Invoice struct {
	Customer string `json:"customer"`
	Total    int    `json:"total"`
}

// Bill writes invoices for so many orders, and commits them when the invoices are there.
func Bill(ctx context.Context, bootstrap string, price, count int) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for billed := 0; billed < count; {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return err
		}
		for _, record := range fetched.Records() {
			var order Order
			if err := json.Unmarshal(record.Value, &order); err != nil {
				return err
			}
			value, err := json.Marshal(Invoice{order.Customer, order.Amount * price})
			if err != nil {
				return err
			}
			invoice := &kgo.Record{Topic: "invoices", Key: []byte(order.Customer), Value: value}
			if err := client.ProduceSync(ctx, invoice).FirstErr(); err != nil {
				return err
			}
			if err := client.CommitRecords(ctx, record); err != nil {
				return err
			}
			billed++
		}
	}
	return nil
}
