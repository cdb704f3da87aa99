// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// Elsewhere are the architectures of another machine, which walks: here only their descriptions
// are known, by which registers are read.
type Elsewhere struct {
	// Where names the other machine, for messages.
	Where string
	// Describe returns the descriptions, which are valid. It is called when an architecture is
	// needed that is not here, once.
	Describe func() ([]*sdk.Description, error)
}

// elsewhere finds the architectures of another machine, once. An error stands for all of them.
func elsewhere(e *Elsewhere) func() ([]*Arch, error) {
	return sync.OnceValues(func() ([]*Arch, error) {
		list, err := e.Describe()
		if err != nil {
			return nil, fmt.Errorf("the architectures of %s are not known: %w", e.Where, err)
		}
		var archs []*Arch
		for _, d := range list {
			archs = append(archs, &Arch{desc: d, caller: caller{plugin: d.Name, origin: e.Where, transport: absent{d.Name, e.Where}, refused: &refusals{}}})
		}
		return archs, nil
	})
}

// absent is the transport of an architecture whose plugin is on another machine.
type absent struct{ name, where string }

var errElsewhere = errors.New("the plugin is on another machine")

func (a absent) do(_ context.Context, call string, _ func(context.Context, peer) error) error {
	return &Failure{Plugin: a.name, Call: call, Err: errElsewhere,
		Reason: fmt.Sprintf("the plugin is at %s, and is not asked from here: install it on this machine too, or send the target there", a.where)}
}

func (absent) prepare()           {}
func (absent) pid() int           { return 0 }
func (absent) starts() uint64     { return 0 }
func (absent) problems() []string { return nil }
func (absent) close()             {}
