// Package pykafkad has a broker for tests: it starts `pykafkad serve`, and asks its control API. One file to copy.
package pykafkad

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var ready = regexp.MustCompile(`^pykafkad ready with control=(\S+) control\.token=(\S+) .*\bon (\S+)$`)

// Broker is one that runs.
type Broker struct {
	Bootstrap  string
	url, token string
}

// Record is one that a topic holds.
type Record struct {
	Partition int    `json:"partition"`
	Offset    int    `json:"offset"`
	Key       string `json:"key"`
	Value     string `json:"value"`
}

// Fault is one that was set.
type Fault struct {
	broker *Broker
	number int
}

// Start runs a broker in memory on a free port until the test ends.
func Start(t testing.TB) *Broker {
	t.Helper()
	command := os.Getenv("PYKAFKAD")
	if command == "" {
		command = "pykafkad"
	}
	words := append(strings.Fields(command), "serve", "--listen", "127.0.0.1:0", "--memory", "64MB", "--control", "0",
		"--set", "group.initial.rebalance.delay.ms=0", "--set", "offsets.topic.num.partitions=1")
	process := exec.Command(words[0], words[1:]...)
	var told bytes.Buffer
	process.Stderr = &told
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatalf("pykafkad does not start: %v", err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		_ = process.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := ready.FindStringSubmatch(lines.Text()); found != nil {
			return &Broker{url: found[1], token: found[2], Bootstrap: found[3]}
		}
	}
	t.Fatalf("pykafkad has ended: %s", told.String())
	return nil
}

// Ask is any route of the control API: its answer goes into `answer`, if there is one.
func (broker *Broker) Ask(method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, broker.url+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+broker.token)
	request.Header.Set("Content-Type", "application/json")
	answered, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answered.Body.Close()
	text, err := io.ReadAll(answered.Body)
	if err != nil {
		return err
	}
	if answered.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, answered.StatusCode, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// Reset goes back to the start; clients stay connected.
func (broker *Broker) Reset() error { return broker.Ask("POST", "/reset", nil, nil) }

// CreateTopic makes a topic, which can be used then.
func (broker *Broker) CreateTopic(name string, partitions int) error {
	return broker.Ask("POST", "/topics", map[string]any{"name": name, "partitions": partitions}, nil)
}

// Produce writes a record.
func (broker *Broker) Produce(topic, key, value string) error {
	records := []map[string]string{{"key": key, "value": value}}
	return broker.Ask("POST", "/topics/"+topic+"/records", map[string]any{"records": records}, nil)
}

// Records are those that a topic holds now.
func (broker *Broker) Records(topic string) ([]Record, error) {
	var found struct{ Records []Record }
	err := broker.Ask("GET", "/topics/"+topic+"/records", nil, &found)
	return found.Records, err
}

// Answer has the next request of an API answered with an error: one about a topic, or any if that is empty.
func (broker *Broker) Answer(api, errorName, topic string) (*Fault, error) {
	var set struct{ Number int }
	body := map[string]any{"kind": "answer", "apis": []string{api}, "error": errorName, "times": 1}
	if topic != "" {
		body["topic"] = topic
	}
	err := broker.Ask("POST", "/faults", body, &set)
	return &Fault{broker, set.Number}, err
}

// Count is how often it has happened.
func (fault *Fault) Count() (int, error) {
	var found struct{ Count int }
	err := fault.broker.Ask("GET", fmt.Sprintf("/faults/%d", fault.number), nil, &found)
	return found.Count, err
}
