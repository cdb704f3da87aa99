// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/download"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolstore"
)

// symbolsVariable is the environment variable that names stores where --symbols does not.
const symbolsVariable = "UNWINDD_SYMBOLS"

// symbolFlags are the flags that name the sources of Breakpad symbol files, and of the code
// of dumps.
type symbolFlags struct {
	stores []string
	isSet  bool
	// names, where it is not nil, is set by the values false and true, which then are no
	// stores: it turns looking for names off and on.
	names *bool
	// isBounded has the meaning of debuginfodFlags.isBounded.
	isBounded bool
}

func (f *symbolFlags) add(flags *pflag.FlagSet) {
	flags.Var(f, "symbols",
		"take symbol files and code from the store at `URL|DIR`, or the symbols of one FILE.sym; may be repeated (default $UNWINDD_SYMBOLS; '' asks none)")
}

// String, Set and Type implement pflag.Value.
func (f *symbolFlags) String() string { return strings.Join(f.stores, " ") }

func (f *symbolFlags) Type() string { return "URL|DIR" }

func (f *symbolFlags) Set(text string) error {
	if f.names != nil {
		if is, err := strconv.ParseBool(text); err == nil {
			*f.names = is
			return nil
		}
	}
	f.isSet = true
	if text != "" {
		f.stores = append(f.stores, text)
	}
	return nil
}

// client makes a client of the stores that the flags name, else UNWINDD_SYMBOLS; nil where
// neither names one. log, where it is not nil, gets a sentence for each request. end closes
// the client.
func (f *symbolFlags) client(log func(text string)) (client object.Remote, end func(), err error) {
	origin, stores := "--symbols", f.stores
	if !f.isSet {
		origin, stores = symbolsVariable, strings.Fields(os.Getenv(symbolsVariable))
	}
	if len(stores) == 0 {
		return nil, func() {}, nil
	}
	o := download.Options{
		Timeout: download.DefaultTimeout, Retries: download.DefaultRetries, Cache: symbolstore.CacheDir(os.Getenv), Log: log,
	}
	if f.isBounded {
		o.MaxFiles = -1
	}
	if isProgressShown() {
		o.Progress = (&downloads{}).show
	}
	c, err := symbolstore.New(stores, o)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("%s: %w", origin, err)}
	}
	return c, c.Close, nil
}

// remotes makes the clients that are asked for files that are not here; end closes the two.
func remotes(d *debuginfodFlags, s *symbolFlags, log func(text string)) (remote, symbols object.Remote, end func(), err error) {
	remote, disconnect, err := d.remote(log)
	if err != nil {
		return nil, nil, nil, err
	}
	symbols, leave, err := s.client(log)
	if err != nil {
		disconnect()
		return nil, nil, nil, err
	}
	return remote, symbols, func() { disconnect(); leave() }, nil
}
