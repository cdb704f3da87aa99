// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine/debuginfod"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/escape"
)

// debuginfodFlags are the flags that name servers of files that are not on this machine.
type debuginfodFlags struct {
	servers []string
	// isBounded: the caller bounds the files of each target itself.
	isBounded bool
}

func (f *debuginfodFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.servers, "debuginfod", nil,
		"ask the debuginfod server at `URL` for files that are not here; may be repeated (default $DEBUGINFOD_URLS; '' asks none)")
}

// remote makes a client of the servers that the flags name, else DEBUGINFOD_URLS; nil where
// neither names one. log, where it is not nil, gets a sentence for each request. end closes
// the client.
func (f *debuginfodFlags) remote(log func(text string)) (remote object.Remote, end func(), err error) {
	o, wrong := debuginfod.FromEnvironment(os.Getenv)
	if len(f.servers) > 0 {
		o.URLs = nil
		for _, text := range f.servers {
			if text == "" {
				continue
			}
			u, err := debuginfod.ParseURL(text)
			if err != nil {
				return nil, nil, usageError{fmt.Errorf("--debuginfod: %w", err)}
			}
			o.URLs = append(o.URLs, u)
		}
	} else if wrong != nil {
		complain(wrong)
	}
	if len(o.URLs) == 0 {
		return nil, func() {}, nil
	}
	o.Log = log
	if f.isBounded {
		o.MaxFiles = -1
	}
	if isProgressShown() {
		o.Progress = (&downloads{}).show
	}
	c := debuginfod.New(o)
	return c, c.Close, nil
}

// isProgressShown reports whether transfers are shown.
func isProgressShown() bool {
	return term.IsTerminal(int(os.Stderr.Fd())) || os.Getenv("DEBUGINFOD_PROGRESS") != ""
}

// downloads shows the progress of transfers, one at a time.
type downloads struct {
	mu    sync.Mutex
	shown *debuginfod.Transfer // at its beginning; nil: none is shown
	since time.Time
	bar   *progressbar.ProgressBar // nil as long as it has not taken long
}

// unshown is the time of a transfer before it is shown.
const unshown = 300 * time.Millisecond

func (d *downloads) show(t debuginfod.Transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.shown == nil && !t.Done:
		d.shown, d.since = &t, time.Now()
		return
	case d.shown == nil || !isSame(&d.shown.RemoteFile, &t.RemoteFile):
		return
	}
	if d.bar == nil && !t.Done && time.Since(d.since) > unshown {
		terminalLine.yield()
		size := t.Size
		if size == 0 {
			size = -1
		}
		d.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription(transferName(&t)),
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

func isSame(a, b *object.RemoteFile) bool {
	return a.Kind == b.Kind && slices.Equal(a.BuildID, b.BuildID) && a.Source == b.Source && a.Name == b.Name && a.ID == b.ID
}

// transferName makes the name of a transfer, and escapes its foreign parts.
func transferName(t *debuginfod.Transfer) string {
	name := t.Source
	if name == "" && len(t.BuildID) == 0 {
		name = fmt.Sprintf("%s of %s", t.Kind, t.Name)
	}
	if name == "" {
		name = fmt.Sprintf("%s of %.8x", t.Kind, t.BuildID)
	}
	return escape.Text(fmt.Sprintf("%s: %s", t.Server, name))
}
