// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// What nothing here claims is of another machine's architecture: its description is known, and a
// call names the place of the plugin. Plugins here go first, and where one claims it the other machine
// is not asked.
func TestArchitecturesOfAnotherMachine(t *testing.T) {
	asked := 0
	d := testDescription(good)
	d.Name, d.Recognises = "theirs", []sdk.Recogniser{{ELFMachine: 40, OSABI: -1}, {ELFMachine: 41, OSABI: -1}}
	m := manager(t, Options{
		InProcess: []sdk.Architecture{claims("ours", sdk.LittleEndian, sdk.Recogniser{ELFMachine: 40, OSABI: -1})},
		Elsewhere: &Elsewhere{Where: "the server", Describe: func() ([]*sdk.Description, error) { asked++; return []*sdk.Description{d}, nil }},
	})
	if a, err := m.ForMachine(machine(40)); err != nil || a.Name() != "ours" || asked != 0 {
		t.Errorf("%v, %v, asked %d times", a, err, asked)
	}
	for range 2 {
		a, err := m.ForMachine(machine(41))
		if err != nil || a.Name() != "theirs" || asked != 1 {
			t.Fatalf("%v, %v, asked %d times", a, err, asked)
		}
		a.Prepare()
		var f *Failure
		if _, err := a.OpenTarget(t.Context(), nil, &sdk.OpenTargetRequest{}); !errors.As(err, &f) || !strings.Contains(f.Reason, "at the server") {
			t.Errorf("%v", err)
		}
	}
	if _, err := m.ForMachine(machine(42)); !errors.Is(err, ErrNoArchitecture) {
		t.Errorf("%v", err)
	}

	lost := errors.New("no server answers")
	m = manager(t, Options{Elsewhere: &Elsewhere{Where: "the server", Describe: func() ([]*sdk.Description, error) { return nil, lost }}})
	if _, err := m.Find("theirs"); !errors.Is(err, ErrNoArchitecture) || !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}
