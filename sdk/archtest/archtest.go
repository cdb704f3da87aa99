// SPDX-License-Identifier: Apache-2.0

// Package archtest is the test kit of architecture plugins. Verify makes the
// calls that the engine makes, and some that only a broken or hostile input
// would lead to, and returns the faults of the answers and how to fix them.
// Test is for the author's own tests:
//
//	func TestArchitecture(t *testing.T) { archtest.Test(t, x86_64.New()) }
package archtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// Severity is the severity of a finding.
type Severity string

// The severities. An Error makes the engine refuse an answer, or hangs or ends
// a plugin. A Warning is allowed, and rarely meant.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is a fault of an architecture.
type Finding struct {
	Check    string   `json:"check"` // the name of the check, one of Checks
	Severity Severity `json:"severity"`
	Detail   string   `json:"detail"` // the request, the answer, and the expectation
	Fix      string   `json:"fix"`    // how to fix it
}

// Options are the data of an architecture that the kit cannot know. The zero value will do.
type Options struct {
	// Code is machine code of the architecture, whole functions, to read frames
	// from. Without it the kit has only bytes that may be no code at all.
	Code []byte
	// Objects are code objects of the architecture. They are opened and read unchanged,
	// and damaged.
	Objects []Object
	// Targets are recorded targets with threads of the architecture. Their notes are read
	// unchanged, and damaged.
	Targets []Target
	// Deadline is how long a call may take by the clock; 0 is five seconds. The engine
	// limits processor time instead.
	Deadline time.Duration
}

// check is one part of the kit.
type check struct {
	name string
	run  func(*verifier)
}

var checks = []check{
	{"description", (*verifier).description},
	{"description-constant", (*verifier).constant},
	{"default-rules", (*verifier).defaultRules},
	{"register-sets", (*verifier).registerSets},
	{"lanes", (*verifier).lanes},
	{"dialects", (*verifier).dialects},
	{"rows", (*verifier).rows},
	{"objects", (*verifier).objects},
	{"variables", (*verifier).variables},
	{"batches", (*verifier).batches},
	{"targets", (*verifier).openTargets},
	{"translate", (*verifier).translate},
	{"cycles", (*verifier).cycles},
	{"expressions", (*verifier).expressions},
	{"garbage", (*verifier).garbage},
	{"damage", (*verifier).damage},
	{"size", (*verifier).size},
	{"concurrency", (*verifier).concurrency},
	{"deadlines", (*verifier).deadlines},
}

// Checks returns the names of all checks, in the order in which they are made.
func Checks() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Verify makes all checks and returns their findings, in their order. Without a valid
// description there is nothing to check the rest against, and only the findings about it
// are returned. It ends early, with the findings so far, when ctx does.
func Verify(ctx context.Context, arch sdk.Architecture, opts Options) []Finding {
	v := &verifier{
		session: newSession(ctx, cmp.Or(opts.Deadline, 5*time.Second)),
		arch:    sdk.WithBase(arch, nil), code: opts.Code, samples: opts.Objects, targets: opts.Targets,
	}
	for _, c := range checks {
		v.check = c.name
		c.run(v)
		if v.desc == nil || ctx.Err() != nil {
			break
		}
	}
	return v.findings
}

// Passed reports whether there is no error among findings.
func Passed(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// T is the part of *testing.T that Test uses.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// Test verifies an architecture as part of a test: errors fail it, warnings are
// logged. At most one opts is used; the default is the zero value.
func Test(t T, arch sdk.Architecture, opts ...Options) {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	for _, f := range Verify(t.Context(), arch, o) {
		report := t.Logf
		if f.Severity == Error {
			report = t.Errorf
		}
		report("%s: %s: %s\n\tfix: %s", f.Severity, f.Check, f.Detail, f.Fix)
	}
}
