// Package orders is the program that is tested: it writes orders, and sums up what was ordered.
package orders

import (
	"context"
	"encoding/json"
	"time"

	"github.com/segmentio/kafka-go"
)

// Order is what a customer has ordered.
type Order struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

// Place writes orders.
func Place(ctx context.Context, bootstrap string, orders ...Order) error {
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: "orders", Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond, WriteBackoffMin: 10 * time.Millisecond,
	}
	defer writer.Close()
	for _, order := range orders {
		value, err := json.Marshal(order)
		if err != nil {
			return err
		}
		if err := writer.WriteMessages(ctx, kafka.Message{Key: []byte(order.Customer), Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// Sums reads so many orders.
func Sums(ctx context.Context, bootstrap string, count int) (map[string]int, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: "sums", Topic: "orders", MaxWait: 100 * time.Millisecond,
		StartOffset: kafka.FirstOffset,
	})
	defer reader.Close()
	found := map[string]int{}
	for range count {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		var order Order
		if err := json.Unmarshal(message.Value, &order); err != nil {
			return nil, err
		}
		found[order.Customer] += order.Amount
	}
	return found, nil
}
