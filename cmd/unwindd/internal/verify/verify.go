// SPDX-License-Identifier: Apache-2.0

// Package verify examines a vendor's plugin as it will be used: its executable, confined, in its
// own process. It makes the checks of sdk/archtest on that process, and checks that only a
// process can fail: how it starts and ends, whether it stops computing for a cancelled call,
// whether it leaks memory or processes, and whether recorded states give the expected stacks.
package verify

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// Options sets the plugin to be examined, and the samples.
type Options struct {
	// Path is the plugin's executable, and Self is unwindd's, which confines it.
	Path, Self string
	// Build is the build that Self must have; "" for any.
	Build string
	// Bundled are the architectures that recorded states may need beside the plugin's.
	Bundled []confine.Bundled
	Logger  hclog.Logger // receives the plugin's standard error; nil for no log
	// Objects are files of code objects of the architecture.
	Objects []string
	// States are files of recorded states, each with a file .expected.json beside it.
	States []string
	// StartDeadline, CallDeadline and Memory are limits of plugins; 0 for the engine's
	// defaults.
	StartDeadline, CallDeadline time.Duration
	Memory                      uint64
	// Grace is how long a process may take to stop computing for a cancelled call; 0 for
	// two seconds.
	Grace time.Duration
}

// Report is the result of an examination.
type Report struct {
	Passed   bool               `json:"passed"` // there is no finding of severity error
	Findings []archtest.Finding `json:"findings"`
	// Checks are the names of the checks that were made, in order.
	Checks []string `json:"-"`
}

// check is a check that needs the process.
type check struct {
	name string
	run  func(*verifier)
}

// startCheck is the name of the first check, that the process starts.
const startCheck = "start"

// processChecks are made after the checks of archtest.
var processChecks = []check{
	{"cancellation", (*verifier).cancellation},
	{"idle", (*verifier).unasked},
	{"memory", (*verifier).memory},
	{"restart", (*verifier).restart},
	{"processes", (*verifier).processes},
	{"end", (*verifier).end},
	{"states", (*verifier).states},
}

// Checks returns the names of all checks, in the order in which they are made.
func Checks() []string {
	names := append([]string{startCheck}, archtest.Checks()...)
	for _, c := range processChecks {
		names = append(names, c.name)
	}
	return names
}

// verifier is one examination.
type verifier struct {
	Options
	ctx      context.Context
	examinee *examinee
	desc     *sdk.Description
	objects  []archtest.Object
	targets  []*Target

	check    string
	findings []archtest.Finding
}

func (v *verifier) find(severity archtest.Severity, fix, detail string) {
	v.findings = append(v.findings, archtest.Finding{Check: v.check, Severity: severity, Detail: detail, Fix: fix})
}

// Plugin makes all checks of a plugin. It returns an error only if the examination itself
// failed: a sample cannot be read, or ctx ended.
func Plugin(ctx context.Context, o Options) (*Report, error) {
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	v := &verifier{Options: o, ctx: ctx, check: startCheck}
	v.examinee = newExaminee(plugin.ProbeOptions{
		Self: o.Self, Build: o.Build, Path: o.Path, Logger: o.Logger,
		StartDeadline: o.StartDeadline, CallDeadline: o.CallDeadline, Memory: o.Memory,
	})
	defer v.examinee.close()
	defer func() {
		for _, t := range v.targets {
			t.Close()
		}
	}()
	checks := []string{startCheck}
	if v.start() {
		if err := v.readObjects(); err != nil {
			return nil, err
		}
		checks = Checks()
		if !v.ask() {
			checks = checks[:2] // without a valid description there is nothing to check against
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &Report{Passed: archtest.Passed(v.findings), Findings: append([]archtest.Finding{}, v.findings...), Checks: checks}, nil
}

// ask makes all checks except that of the start. It reports whether there is a valid description
// to check against.
func (v *verifier) ask() bool {
	var targets []archtest.Target
	if v.desc != nil {
		targets = v.openTargets()
	}
	v.findings = append(v.findings, archtest.Verify(v.ctx, v.examinee, archtest.Options{
		Objects: v.objects, Code: sampleCode(v.objects), Targets: targets,
		// The engine has deadlines for the process. The kit's is never reached.
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
