// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/internal/garbage"
)

// workerFlags are the flags of `unwindd worker`.
type workerFlags struct {
	*serveFlags
	queueFlags
	queueListen string
	queueConfig string
	queueSize   byteSize
	queueKeep   time.Duration
	replicas    int
}

// defaultQueueListen is the default address of a worker's own queue, with the usual port of
// NATS.
const defaultQueueListen = "localhost:4222"

func newWorker(g *globals) *cobra.Command {
	f := &workerFlags{serveFlags: newServeFlags(g)}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Do the jobs of a fleet",
		Long: `Take jobs from the queue of a fleet, NATS JetStream, and do them, one after the other
and --workers at a time, until SIGTERM. 'unwindd submit' asks for jobs.

Without --queue this worker has the queue itself, in its --state folder, and other
processes of this user find it there. A worker keeps nothing that others need: one that
is killed leaves its jobs to them, and each job has one result.

What it reads is confined and bounded as with 'unwindd serve', whose flags it has, and
whose settings in the table [serve]. With --listen it answers requests, too, and has the
figures of the queue at /metrics.`,
		Example: `  unwindd worker
  unwindd worker --queue nats://queue.example.org:4222 --queue-creds my.creds
  unwindd worker --queue-listen localhost:0 --workers 4`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.set = cmd.Flags()
			return f.run(cmd.Context(), cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	f.serveFlags.add(flags)
	f.queueFlags.add(flags)
	flags.Lookup("listen").Usage = "answer requests at `ADDRESS`, too: unix:PATH or HOST:PORT; may be repeated"
	flags.Lookup("workers").Usage = "do `N` jobs at a time; 0: none, this worker only has the queue"
	flags.Lookup("queue").Usage = "take jobs from the queue at `URL`, as nats://HOST:4222 or tls://HOST:4222 (default $UNWINDD_QUEUE, else this worker has it)"
	flags.StringVar(&f.queueListen, "queue-listen", defaultQueueListen, "where this worker has the queue, others reach it at `HOST:PORT` of this machine")
	flags.StringVar(&f.queueConfig, "queue-config", "", "where this worker has the queue, its server has the settings in `FILE`, of nats-server: accounts, TLS, a cluster")
	flags.Var(&f.queueSize, "queue-size", "who comes first to a queue sets `SIZE` bytes aside for it (default 8G, or three quarters of the disk that is free)")
	flags.DurationVar(&f.queueKeep, "queue-keep", 7*24*time.Hour, "who comes first to a queue has it keep inputs and results for `DURATION`")
	flags.IntVar(&f.replicas, "queue-replicas", 1, "who comes first to a queue has `N` of its servers keep everything")
	return cmd
}

// checkQueue refuses flags of the queue that have no meaning together.
func (f *workerFlags) checkQueue(isSet func(flag string) bool) error {
	for _, name := range []string{"queue-listen", "queue-config"} {
		if f.where() != "" && isSet(name) {
			return usageError{fmt.Errorf("--%s is for a queue that this worker has: expected no --queue, and no UNWINDD_QUEUE", name)}
		}
	}
	switch {
	case f.queueConfig != "" && isSet("queue-listen"):
		return usageError{errors.New("--queue-config says where the queue listens: expected no --queue-listen")}
	case f.replicas < 1 || f.replicas > 5:
		return usageError{fmt.Errorf("--queue-replicas %d: expected 1 to 5", f.replicas)}
	case f.queueKeep < time.Minute:
		return usageError{fmt.Errorf("--queue-keep %v: expected a minute or more", f.queueKeep)}
	}
	return f.queueFlags.check()
}

// startQueue starts the server of a queue in this process. It is nil in an executable that is
// built without the tag fleet. nats-server is a fifth of an executable and a tenth of its
// start, which every other command would pay.
var startQueue func(fleet.ServerOptions) (fleet.Server, error)

var errNoQueueServer error = usageError{errors.New(`this executable has no queue of its own: expected --queue URL of a nats-server with JetStream ("nats-server -js" and --queue nats://localhost:4222), or an executable built with -tags fleet`)}

// openQueue reaches the queue, and starts its server first, where this worker has the
// queue.
func (f *workerFlags) openQueue(ctx context.Context, log hclog.Logger) (q *fleet.Queue, place string, end func(), err error) {
	o := f.queueFlags.options()
	o.Keep = fleet.Keep{Replicas: f.replicas, Time: f.queueKeep, Bytes: int64(f.queueSize)} //nolint:gosec // at most 1<<62
	o.Log = func(text string) { log.Warn(text) }
	stop := func() {}
	if place = o.URL; place == "" {
		if startQueue == nil {
			return nil, "", nil, errNoQueueServer
		}
		o.Server, err = startQueue(fleet.ServerOptions{Dir: queueDir(f.stateDir()), Listen: f.queueListen, Config: f.queueConfig, Log: o.Log})
		if err != nil {
			return nil, "", nil, err
		}
		stop, place = o.Server.Close, "nats://"+o.Server.Address()
	}
	if q, err = fleet.Connect(ctx, o); err != nil {
		stop()
		return nil, "", nil, err
	}
	if o.Server == nil {
		place = q.Place() // the URL may have a token
	}
	return q, place, func() { q.Close(); stop() }, nil
}

func (f *workerFlags) run(ctx context.Context, isSet func(flag string) bool) error {
	if err := errors.Join(needsLinux("worker"), f.checkQueue(isSet)); err != nil {
		return err
	}
	garbage.CollectSeldom()
	if f.limits.Workers == 0 {
		return f.serveQueue(ctx)
	}
	o, end, err := f.serverOptions()
	if err != nil {
		return err
	}
	defer end()
	q, place, endQueue, err := f.openQueue(ctx, o.Log)
	if err != nil {
		return err
	}
	defer endQueue()
	if o.Remote, err = fleet.OpenObjects(q, filepath.Join(o.State, "fleet"), o.Limits.Objects, o.Remote); err != nil {
		return err
	}
	s, err := service.New(o)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // a name for people
	w, err := fleet.NewWorker(ctx, q, s.Doer(), fleet.WorkOptions{Name: fmt.Sprintf("%s:%d", host, os.Getpid()), Jobs: o.Workers})
	if err != nil {
		s.Abandon()
		return err
	}
	s.WatchFleet(q, w)
	return f.work(ctx, s, w, place)
}

// serveQueue runs the queue's server, and does no jobs, until a signal ends it.
func (f *workerFlags) serveQueue(ctx context.Context) error {
	if f.where() != "" || len(f.serveFlags.listen) > 0 {
		return usageError{errors.New("--workers 0 is for a queue that this worker has, and does no work of: expected no --queue, no UNWINDD_QUEUE, and no --listen")}
	}
	f.limits.Workers = 1 // checkLimits wants one
	if err := errors.Join(f.checkFormat("text"), f.checkLimits()); err != nil {
		return err
	}
	log := f.logger()
	q, place, end, err := f.openQueue(ctx, log)
	if err != nil {
		return err
	}
	defer end()
	served, stop := context.WithCancel(ctx)
	defer stop()
	go q.ServeUsers(served)
	ended := make(chan syscall.Signal, 1)
	takeSignals(func(sig syscall.Signal) bool {
		if sig == syscall.SIGINT || sig == syscall.SIGTERM {
			select {
			case ended <- sig:
				return true
			default: // a second one
			}
		}
		return sig == syscall.SIGHUP // there is nothing to read again
	})
	ready := report.NewLinePrinter(stdout)
	ready.Printf("holding the queue %s\n", place)
	if err := ready.Flush(); err != nil {
		return err
	}
	notify("READY=1")
	sig := <-ended
	log.Info("ending", "signal", sig.String())
	notify("STOPPING=1")
	return nil
}

// work does jobs until a signal ends it, or a listener fails.
func (f *workerFlags) work(ctx context.Context, s *service.Server, w *fleet.Worker, place string) error {
	secure, listeners, err := f.openListeners(ctx, s)
	if err != nil {
		s.Abandon()
		return err
	}
	defer closeListeners(listeners)
	more, noMore := context.WithCancel(ctx)
	defer noMore()
	now, giveUp := context.WithCancel(ctx)
	defer giveUp()
	ended := make(chan syscall.Signal, 1)
	takeSignals(func(sig syscall.Signal) bool {
		if f.onSignal(sig, s, secure, ended) {
			return true
		}
		s.Abandon()
		return false
	})
	ready := report.NewLinePrinter(stdout)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- s.Serve(l, secure.config()) }()
		ready.Printf("listening %s\n", addressOf(l))
	}
	ready.Printf("working for %s\n", place)
	if err := ready.Flush(); err != nil {
		return err
	}
	notify("READY=1")
	done := make(chan error, 1)
	go func() { done <- w.Run(more, now) }()
	select {
	case err = <-failed:
	case err = <-done:
	case sig := <-ended:
		s.Log.Info("draining", "signal", sig.String(), "for", f.drain.String())
		notify("STOPPING=1")
		closeListeners(listeners)
		late := time.AfterFunc(f.drain, giveUp)
		defer late.Stop()
		noMore()
		err = <-done
	}
	noMore()
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
	defer stop()
	return errors.Join(err, s.Drain(drain))
}

// openListeners listens at the addresses of the flags.
func (f *workerFlags) openListeners(ctx context.Context, s *service.Server) (*security, []net.Listener, error) {
	secure, err := f.security()
	if err != nil || len(f.serveFlags.listen) == 0 {
		return secure, nil, err
	}
	list, err := f.listeners(ctx, secure != nil, s.Tokens != nil)
	return secure, list, err
}
