// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/report"
)

// relayFlags are the flags of profiles that a server names and passes on.
type relayFlags struct {
	listen []string
	to     string
}

func (f *relayFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.listen, "otlp-listen", nil, "take profiles of OpenTelemetry at `ADDRESS`, by gRPC and HTTP, name their frames, and send them to --otlp-to; may be repeated")
	flags.StringVar(&f.to, "otlp-to", "", "send the profiles of --otlp-listen to the collector at `URL`: grpc://HOST:PORT, grpcs://, http:// or https://")
}

// collector returns the collector to which profiles go; nil: none are taken.
func (f *relayFlags) collector() (*report.Collector, error) {
	switch {
	case len(f.listen) == 0 && f.to == "":
		return nil, nil
	case f.to == "":
		return nil, usageError{errors.New("--otlp-listen: expected --otlp-to URL too: profiles are passed on to a collector, none are kept here")}
	case len(f.listen) == 0:
		return nil, usageError{errors.New("--otlp-to: expected --otlp-listen ADDRESS too")}
	}
	return newCollector("--otlp-to", f.to)
}

// listenForProfiles listens at the addresses of --otlp-listen.
func (f *serveFlags) listenForProfiles(ctx context.Context, isSecure, hasTokens bool) (list []net.Listener, err error) {
	for _, a := range f.relay.listen {
		l, err := listenAt(ctx, "--otlp-listen", a)
		if err != nil {
			closeListeners(list)
			return nil, err
		}
		list = append(list, l)
	}
	if err := f.mayListen("--otlp-listen", list, isSecure, hasTokens); err != nil {
		closeListeners(list)
		return nil, err
	}
	return list, nil
}
