// SPDX-License-Identifier: Apache-2.0

// Package verify examines a vendor's plugin as it will be used: its executable, confined, in its
// own process. It makes the checks of sdk/archtest on that process, and checks that only a
// process can fail: how it starts and ends, whether it stops computing for a cancelled call,
// whether it leaks memory or processes, and whether recorded states give the expected stacks.
package verify

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
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

// kind is a kind of plugins.
type kind struct {
	// kit returns the names of the checks of the kit for such plugins.
	kit func() []string
	// examine makes these checks, and sets what later ones need. It reports whether there is
	// a valid description to check against.
	examine func(*verifier) bool
	// describe makes the call of Describe, and names the first field in which the answer
	// differs from what the plugin said first; "" if it is the same.
	describe func(*verifier) (difference string, err error)
	// requests returns a request for each call, large enough to be cancelled while it is
	// answered.
	requests func(*verifier, nothing) []request
	// checks are made after the checks of the kit.
	checks []check
}

// kinds are the kinds of plugins, by the prefixes of their executables' names. An executable with
// another name is taken for an architecture's.
var kinds = map[string]*kind{
	sdk.ExecutablePrefix: {
		kit: archtest.Checks, examine: (*verifier).examineArchitecture, describe: (*verifier).describeArchitecture,
		requests: (*verifier).architectureRequests,
		checks: []check{
			{"cancellation", (*verifier).cancellation},
			{"idle", (*verifier).unasked},
			{"memory", (*verifier).memory},
			{"restart", (*verifier).restartArchitecture},
			{"processes", (*verifier).processes},
			{"end", (*verifier).end},
			{"states", (*verifier).states},
		},
	},
	sdk.RuntimePrefix: {
		kit: archtest.RuntimeChecks, examine: (*verifier).examineRuntime, describe: (*verifier).describeRuntime,
		requests: (*verifier).runtimeRequests,
		checks: []check{
			{"cancellation", (*verifier).cancellation},
			{"idle", (*verifier).unasked},
			{"memory", (*verifier).memory},
			{"restart", (*verifier).restart},
			{"processes", (*verifier).processes},
			{"end", (*verifier).end},
			{"states", (*verifier).states},
		},
	},
}

// kindOf returns the kind of a plugin's executable.
func kindOf(path string) *kind {
	for prefix, k := range kinds {
		if strings.HasPrefix(filepath.Base(path), prefix) {
			return k
		}
	}
	return kinds[sdk.ExecutablePrefix]
}

// Checks returns the names of all checks of a plugin's executable, in the order in which they
// are made.
func Checks(path string) []string {
	k := kindOf(path)
	names := append([]string{startCheck}, k.kit()...)
	for _, c := range k.checks {
		names = append(names, c.name)
	}
	return names
}

// verifier is one examination.
type verifier struct {
	Options
	ctx      context.Context
	kind     *kind
	examinee *examinee
	desc     *sdk.Description        // of an architecture, once it is valid
	runtime  *sdk.RuntimeDescription // of a runtime, likewise
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
	v := &verifier{Options: o, ctx: ctx, kind: kindOf(o.Path), check: startCheck}
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
		checks = Checks(o.Path)
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
	if !v.kind.examine(v) {
		return false
	}
	for _, c := range v.kind.checks {
		if v.ctx.Err() != nil {
			break
		}
		v.check = c.name
		c.run(v)
	}
	return true
}

// kitDeadline is the deadline of the kit. The engine has deadlines for the process, and this one is
// never reached.
func (v *verifier) kitDeadline() time.Duration {
	return 10 * max(cmp.Or(v.CallDeadline, plugin.DefaultCallDeadline), time.Minute)
}

// examineArchitecture makes the checks of the kit for architectures.
func (v *verifier) examineArchitecture() bool {
	var targets []archtest.Target
	if v.desc != nil {
		targets = v.openTargets()
	}
	v.findings = append(v.findings, archtest.Verify(v.ctx, v.examinee, archtest.Options{
		Objects: v.objects, Code: sampleCode(v.objects), Targets: targets, Deadline: v.kitDeadline(),
	})...)
	return v.desc != nil
}

// describeArchitecture describes the architecture again.
func (v *verifier) describeArchitecture() (difference string, err error) {
	again, err := v.examinee.Describe(v.ctx)
	if err != nil {
		return "", err
	}
	return archtest.Difference(v.desc, again), nil
}
