// SPDX-License-Identifier: Apache-2.0

// Package verify examines a vendor's plugin as it will be used: its executable,
// confined, in a process of its own. It makes the checks of sdk/archtest on that
// process, and those that only a process can fail: how it starts and ends, what it does
// with a call that nobody waits for any more, what it leaves behind, and whether recorded
// states are walked to the stacks that they had.
package verify

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/plugin/confine"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// Options say what is examined, and with what.
type Options struct {
	// Path is the plugin's executable, and Self that of unwindd, which confines it.
	Path, Self string
	// Build is the build that Self must be of; "": any.
	Build string
	// Bundled are the architectures that recorded states may need beside the plugin's.
	Bundled []confine.Bundled
	Logger  hclog.Logger // gets what the plugin writes to standard error; nil: nobody does
	// Objects are files of code objects of the architecture.
	Objects []string
	// States are files of recorded states: see stateSuffix.
	States []string
	// StartDeadline, CallDeadline and Memory are what plugins have; 0 is as much as the
	// engine gives.
	StartDeadline, CallDeadline time.Duration
	Memory                      uint64
	// Grace is how long a process may take to stop what nobody waits for any more; 0 is
	// two seconds.
	Grace time.Duration
}

// A Report is what was found.
type Report struct {
	Passed   bool               `json:"passed"` // no finding is an error
	Findings []archtest.Finding `json:"findings"`
	// Checks are the names of those that were made, in order.
	Checks []string `json:"-"`
}

// A check is one that needs the process.
type check struct {
	name string
	run  func(*verifier)
}

// startCheck is what is checked before there is anything to ask.
const startCheck = "start"

// processChecks are made when those of archtest are.
var processChecks = []check{
	{"cancellation", (*verifier).cancellation},
	{"memory", (*verifier).memory},
	{"restart", (*verifier).restart},
	{"processes", (*verifier).processes},
	{"end", (*verifier).end},
	{"states", (*verifier).states},
}

// Checks are the names of all checks, in the order in which they are made.
func Checks() []string {
	names := append([]string{startCheck}, archtest.Checks()...)
	for _, c := range processChecks {
		names = append(names, c.name)
	}
	return names
}

// A verifier is one examination.
type verifier struct {
	Options
	ctx      context.Context
	examinee *examinee
	desc     *sdk.Description
	objects  []archtest.Object

	check    string
	findings []archtest.Finding
}

func (v *verifier) find(severity archtest.Severity, fix, detail string) {
	v.findings = append(v.findings, archtest.Finding{Check: v.check, Severity: severity, Detail: detail, Fix: fix})
}

// Plugin makes all checks of a plugin. The error says that the examination itself could
// not be made: a sample cannot be read, or ctx ended.
func Plugin(ctx context.Context, o Options) (*Report, error) {
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	v := &verifier{Options: o, ctx: ctx, check: startCheck}
	v.examinee = newExaminee(plugin.ProbeOptions{
		Self: o.Self, Build: o.Build, Path: o.Path, Logger: o.Logger,
		StartDeadline: o.StartDeadline, CallDeadline: o.CallDeadline, Memory: o.Memory,
	})
	defer v.examinee.close()
	made := []string{startCheck}
	if v.start() {
		if err := v.readObjects(); err != nil {
			return nil, err
		}
		made = Checks()
		if !v.ask() {
			made = made[:2] // without a valid description there is nothing to check against
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &Report{Passed: archtest.Passed(v.findings), Findings: append([]archtest.Finding{}, v.findings...), Checks: made}, nil
}

// ask makes all checks but that of the start. It says whether there is a description to
// check against.
func (v *verifier) ask() bool {
	v.findings = append(v.findings, archtest.Verify(v.ctx, v.examinee, archtest.Options{
		Objects: v.objects, Code: sampleCode(v.objects),
		// The process has its deadlines of the engine. What is left to the kit is never
		// reached.
		Deadline: 10 * max(cmp.Or(v.CallDeadline, plugin.DefaultCallDeadline), time.Minute),
	})...)
	if v.desc == nil {
		return false
	}
	for _, c := range processChecks {
		if v.ctx.Err() != nil {
			break
		}
		v.check = c.name
		c.run(v)
	}
	return true
}
