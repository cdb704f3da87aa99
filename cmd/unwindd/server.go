// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file lets a server do the work of commands. The targets are opened here, and stay here.

// serverCommands are the commands of which a server does the work.
var serverCommands = []string{"stack", "profile", "compare", "snapshot", "symbolize"}

// connectServer makes a client of the server that --server names, else UNWINDD_SERVER; nil where
// neither names one.
func (g *globals) connectServer(cmd *cobra.Command) (*service.Client, error) {
	origin, address := "--server", g.server
	if address == "" && !cmd.Flags().Changed("server") {
		origin, address = "UNWINDD_SERVER", os.Getenv("UNWINDD_SERVER")
	}
	if address == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	c, err := service.NewClient(service.ClientOptions{Address: address, Token: os.Getenv("UNWINDD_TOKEN"), Log: g.log()})
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", origin, err)}
	}
	return c, nil
}

// refuseDisassembler refuses a disassembler of this machine where a server does the work.
func refuseDisassembler(c *service.Client, program string) error {
	if c == nil || program == "" {
		return nil
	}
	return usageError{fmt.Errorf("--disassembler %s: the server at %s has its own", program, c.Address())}
}

// saySent says how many bytes went to a server and came from it.
func (g *globals) saySent(c *service.Client, about string) {
	if log := g.log(); log != nil {
		log(fmt.Sprintf("%s: %d bytes were sent to the server, %d came from it", about, c.Sent(), c.Received()))
	}
}

// elsewhere returns options with the architectures of a server, whose plugins read registers of
// targets here by their descriptions; without a server there are none.
func elsewhere(ctx context.Context, c *service.Client) (o plugin.Options) {
	if c != nil {
		o.Elsewhere = &plugin.Elsewhere{Where: "the server", Describe: func() ([]*sdk.Description, error) { return c.Architectures(ctx) }}
	}
	return o
}

// servedTarget is a target whose stacks a server writes.
type servedTarget struct {
	*stackFlags
	client *service.Client
	target *engine.Target
	report *bufio.Reader
	end    context.CancelFunc
	ended  chan struct{} // closed when err is known
	err    error
}

// ask opens a target, and has the server begin. The error may be the server's, before it
// wrote anything.
func (f *stackFlags) ask(ctx context.Context, c *service.Client, e *engine.Engine, path string) (prepared, error) {
	t, err := f.openCounted(e, path)
	if err != nil {
		return nil, err
	}
	a := &servedTarget{stackFlags: f, client: c, target: t, ended: make(chan struct{})}
	ctx, a.end = context.WithCancel(ctx)
	reader, pipe := io.Pipe()
	a.report = bufio.NewReader(reader)
	toStdout := cmp.Or(f.output, stdoutName) == stdoutName
	isColored := f.format == "text" && (toStdout && f.colors(os.Stdout) || f.color == "always")
	o := job.WriteOptions{Verbose: f.verbose, Color: isColored, Most: f.most}
	go func() {
		defer close(a.ended)
		_, a.err = c.Walk(ctx, t, &f.job, o, pipe)
		if errors.Is(a.err, trace.ErrNotWalked) {
			_ = pipe.Close() // it is whole
			return
		}
		_ = pipe.CloseWithError(a.err)
	}()
	if _, err := a.report.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		a.close()
		return nil, ofServer(err)
	}
	return a, nil
}

// ofServer makes a server's error of usage a usageError.
func ofServer(err error) error {
	var e *service.Error
	if errors.As(err, &e) && e.IsUsage() {
		return usageError{err}
	}
	return err
}

// write writes the stacks.
func (a *servedTarget) write(_ context.Context, w *writer) error {
	var err error
	if a.format == "text" {
		err = report.Relay(w, a.report, w.isColored)
	} else {
		_, err = io.Copy(w, a.report)
	}
	if err != nil {
		return ofServer(err)
	}
	<-a.ended
	a.saySent(a.client, a.target.Info().Path)
	return a.notOverFiles(a.target)
}

func (a *servedTarget) unwalked() error {
	<-a.ended
	return a.err
}

// close ends the walk, and closes the target.
func (a *servedTarget) close() {
	a.end()
	// The writing goroutine waits for a reader.
	_, _ = io.Copy(io.Discard, a.report)
	<-a.ended
	_ = a.target.Close()
}
