// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service/fleet"
)

// queueFlags are the flags that name the queue of a fleet.
type queueFlags struct{ url, credentials, ca, certificate, key string }

func (f *queueFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "queue", "", "the queue of the fleet is at `URL`, as nats://HOST:4222 or tls://HOST:4222 (default $UNWINDD_QUEUE, else that of a worker of this user)")
	flags.StringVar(&f.credentials, "queue-creds", "", "show the queue the user of `FILE`, NATS credentials")
	flags.StringVar(&f.ca, "queue-ca", "", "trust servers of the queue whose certificates are of an authority in `FILE`")
	flags.StringVar(&f.certificate, "queue-cert", "", "show the queue the certificate in `FILE`")
	flags.StringVar(&f.key, "queue-key", "", "the key of --queue-cert is in `FILE`")
}

// where returns the URL of the queue from the flags or the environment; "" where neither
// has it.
func (f *queueFlags) where() string { return cmp.Or(f.url, os.Getenv("UNWINDD_QUEUE")) }

func (f *queueFlags) check() error {
	if (f.certificate == "") != (f.key == "") {
		return usageError{errors.New("--queue-cert and --queue-key: expected both")}
	}
	return nil
}

// options returns the options of a connection to the queue.
func (f *queueFlags) options() fleet.Options {
	return fleet.Options{
		URL: f.where(), Credentials: f.credentials, CA: f.ca, Certificate: f.certificate, Key: f.key, Name: "unwindd " + filepath.Base(os.Args[0]),
	}
}

// queueDir returns the folder of a worker's own queue.
func queueDir(state string) string { return filepath.Join(state, "queue") }

// connect reaches the queue that is named, or else the one of a worker of this user.
func (f *queueFlags) connect(ctx context.Context, log func(string)) (*fleet.Queue, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	o := f.options()
	o.Log = log
	if o.URL == "" {
		dir := queueDir(xdg("XDG_STATE_HOME", ".local/state"))
		if o.URL = fleet.ReadAddress(dir); o.URL == "" {
			return nil, usageError{fmt.Errorf("no queue: expected --queue URL, or a worker of this user, whose queue is in %s: start one with `unwindd worker`", dir)}
		}
	}
	q, err := fleet.Connect(ctx, o)
	if errors.Is(err, fleet.ErrNoQueue) {
		return nil, fmt.Errorf("%w: start a worker with `unwindd worker`, or name another queue with --queue URL", err)
	}
	return q, err
}
