package franz

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.org/orders/pykafkad"
)

func broker(t *testing.T) (*pykafkad.Broker, context.Context) {
	t.Helper()
	found := pykafkad.Start(t)
	for _, topic := range []string{"orders", "invoices"} {
		if err := found.CreateTopic(topic, 3); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return found, ctx
}

func order(t *testing.T, kafka *pykafkad.Broker, amounts ...int) {
	t.Helper()
	for _, amount := range amounts {
		if err := kafka.Produce("orders", "ann", fmt.Sprintf(`{"customer": "ann", "amount": %d}`, amount)); err != nil {
			t.Fatal(err)
		}
	}
}

func invoices(t *testing.T, kafka *pykafkad.Broker) []string {
	t.Helper()
	records, err := kafka.Records("invoices")
	if err != nil {
		t.Fatal(err)
	}
	values := []string{}
	for _, each := range records {
		values = append(values, each.Value)
	}
	return values
}

func TestOrdersAreBilled(t *testing.T) {
	kafka, ctx := broker(t)
	order(t, kafka, 1, 2)
	if err := Bill(ctx, kafka.Bootstrap, 5, 2); err != nil {
		t.Fatal(err)
	}
	expected := fmt.Sprint([]string{`{"customer":"ann","total":5}`, `{"customer":"ann","total":10}`})
	if found := fmt.Sprint(invoices(t, kafka)); found != expected {
		t.Fatal(found)
	}
}

func TestACoordinatorThatMovesBillsNothingTwice(t *testing.T) {
	kafka, ctx := broker(t)
	order(t, kafka, 1)
	fault, err := kafka.Answer("OffsetCommit", "NOT_COORDINATOR", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := Bill(ctx, kafka.Bootstrap, 5, 1); err != nil {
		t.Fatal(err)
	}
	order(t, kafka, 2)
	if err := Bill(ctx, kafka.Bootstrap, 5, 1); err != nil {
		t.Fatal(err)
	}
	if count, err := fault.Count(); err != nil || count != 1 {
		t.Fatalf("the fault has happened %d times: %v", count, err)
	}
	if found := invoices(t, kafka); len(found) != 2 {
		t.Fatal(found)
	}
}
