// Starts an image by the module of Testcontainers, prints where clients reach it, and stops it when its input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/docker/docker/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/kafka"
)

func main() {
	if err := start(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(image, network string) error {
	ctx := context.Background()
	started, err := kafka.Run(ctx, image, testcontainers.WithHostConfigModifier(func(config *container.HostConfig) {
		config.NetworkMode = container.NetworkMode(network)
	}))
	defer func() { _ = testcontainers.TerminateContainer(started, testcontainers.StopTimeout(0)) }()
	if err != nil {
		return err
	}
	brokers, err := started.Brokers(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("bootstrap=%s\n", brokers[0])
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
