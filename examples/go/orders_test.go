package orders

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.org/orders/pykafkad"
)

func broker(t *testing.T) (*pykafkad.Broker, context.Context) {
	t.Helper()
	found := pykafkad.Start(t)
	if err := found.CreateTopic("orders", 3); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return found, ctx
}

func TestOrdersSurviveALeaderThatMoves(t *testing.T) {
	kafka, ctx := broker(t)
	fault, err := kafka.Answer("Produce", "NOT_LEADER_OR_FOLLOWER", "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := Place(ctx, kafka.Bootstrap, Order{"ann", 2}); err != nil {
		t.Fatal(err)
	}
	if count, err := fault.Count(); err != nil || count != 1 {
		t.Fatalf("the fault has happened %d times: %v", count, err)
	}
	records, err := kafka.Records("orders")
	if err != nil || len(records) != 1 || records[0].Value != `{"customer":"ann","amount":2}` {
		t.Fatalf("%v: %v", records, err)
	}
}

func TestOrdersAreSummedUp(t *testing.T) {
	kafka, ctx := broker(t)
	for amount := 1; amount <= 3; amount++ {
		if err := kafka.Produce("orders", "ann", fmt.Sprintf(`{"customer": "ann", "amount": %d}`, amount)); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := Sums(ctx, kafka.Bootstrap, 3)
	if err != nil || sums["ann"] != 6 {
		t.Fatalf("%v: %v", sums, err)
	}
}

func TestAMisspeltFaultIsNamed(t *testing.T) {
	kafka, _ := broker(t)
	if _, err := kafka.Answer("Produze", "NOT_LEADER_OR_FOLLOWER", "orders"); err == nil || !strings.Contains(err.Error(), "Produce") {
		t.Fatal(err)
	}
}
