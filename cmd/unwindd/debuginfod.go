// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/escape"
)

// debuginfodFlags are the flags that name servers of files that are not on this machine.
type debuginfodFlags struct{ servers []string }

func (f *debuginfodFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.servers, "debuginfod", nil,
		"ask the debuginfod server at `URL` for files that are not here; may be repeated (default $DEBUGINFOD_URLS; '' asks none)")
}

// downloads returns the downloads from the servers that the flags name, else DEBUGINFOD_URLS.
// log, where it is not nil, gets a sentence for each request.
func (f *debuginfodFlags) downloads(log func(text string)) engine.Downloads {
	d, wrong := engine.EnvironmentDownloads(os.Getenv)
	if len(f.servers) > 0 {
		d.Debuginfod.URLs = slices.DeleteFunc(slices.Clone(f.servers), func(text string) bool { return text == "" })
	} else if wrong != nil {
		complain(wrong)
	}
	d.Log = log
	if isProgressShown() {
		d.Progress = (&downloads{}).show
	}
	return d
}

// connectServers makes the clients of the servers that downloads returns.
func (f *debuginfodFlags) connectServers(log func(text string)) (*engine.Remotes, error) {
	d := f.downloads(log)
	r, err := d.Connect()
	return r, serverUsage(err, "")
}

// connectStores is connectServers with the stores of other flags.
func (f *debuginfodFlags) connectStores(stores *symbolFlags, log func(text string)) (*engine.Remotes, error) {
	d := f.downloads(log)
	stores.addTo(&d)
	r, err := d.Connect()
	return r, serverUsage(err, stores.origin())
}

// serverUsage makes the error of a server a usageError. stores is the flag or the variable that
// names stores.
func serverUsage(err error, stores string) error {
	var e *engine.ServerError
	switch {
	case !errors.As(err, &e):
		return err
	case e.IsStore && errors.Is(err, fs.ErrNotExist): // as with other paths
		return fmt.Errorf("%s: %w", stores, e.Err)
	case e.IsStore:
		return usageError{fmt.Errorf("%s: %w", stores, e.Err)}
	}
	return usageError{fmt.Errorf("--debuginfod: %w", e.Err)}
}

// isProgressShown reports whether transfers are shown.
func isProgressShown() bool {
	return term.IsTerminal(int(os.Stderr.Fd())) || os.Getenv("DEBUGINFOD_PROGRESS") != ""
}

// downloads shows the progress of transfers, one at a time.
type downloads struct {
	mu    sync.Mutex
	shown *engine.Transfer // at its beginning; nil: none is shown
	since time.Time
	bar   *progressbar.ProgressBar // nil as long as it has not taken long
}

// unshown is the time of a transfer before it is shown.
const unshown = 300 * time.Millisecond

func (d *downloads) show(t engine.Transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.shown == nil && !t.Done:
		d.shown, d.since = &t, time.Now()
		return
	case d.shown == nil || d.shown.File != t.File:
		return
	}
	if d.bar == nil && !t.Done && time.Since(d.since) > unshown {
		terminalLine.yield()
		size := t.Size
		if size == 0 {
			size = -1
		}
		d.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(escape.Text(t.Server+": "+t.File)),
			progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(20), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetSpinnerChangeInterval(0))
	}
	if d.bar != nil {
		_ = d.bar.Set64(t.Bytes)
	}
	if t.Done {
		if d.bar != nil {
			_ = d.bar.Clear()
			terminalLine.restore()
		}
		d.shown, d.bar = nil, nil
	}
}
