// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// oddRuntime is the plugin of a language runtime that has one fault; "good" has none.
type oddRuntime struct {
	sdk.RuntimeBase
	fault string
}

// Describe implements sdk.Runtime.
func (o oddRuntime) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	d := &sdk.RuntimeDescription{Name: "odd", Version: "1", Recognises: []sdk.RuntimeRecogniser{{Symbol: "odd_run"}}, Symbols: []string{"odd_state"}}
	switch o.fault {
	case "recognises-nothing":
		d.Recognises = nil
	case "another-in-each-process":
		d.Version = fmt.Sprint(os.Getpid())
	}
	return d, nil
}

// OpenRuntime implements sdk.Runtime.
func (o oddRuntime) OpenRuntime(_ context.Context, _ sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	switch o.fault {
	case "believes-symbols":
		if !req.Symbols[0].IsKnown {
			panic("no odd_state")
		}
	case "computes-in-between":
		go spin()
	}
	return &sdk.OpenRuntimeAnswer{}, nil
}

// CodeRules implements sdk.Runtime.
func (o oddRuntime) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	switch {
	case o.fault == "hangs":
		select {}
	case o.fault == "exits-in-a-call":
		os.Exit(3)
	case o.fault == "too-few" && len(req.PCs) > 1:
		req.PCs = req.PCs[1:]
	}
	return o.RuntimeBase.CodeRules(ctx, e, req)
}

// ManagedThreads implements sdk.Runtime.
func (o oddRuntime) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	if o.fault == "forgets-runtimes" && req.Runtime == 77 {
		return nil, errors.New("unknown handle")
	}
	return o.RuntimeBase.ManagedThreads(ctx, e, req)
}

func TestASoundRuntimePasses(t *testing.T) {
	path := executable(t, sdk.RuntimePrefix+"good")
	r := examine(t, verify.Options{Path: path, Grace: 5 * time.Second})
	if !r.Passed || len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
	if got, want := strings.Join(r.Checks, " "), strings.Join(verify.Checks(path), " "); got != want || !strings.Contains(got, "modules") {
		t.Errorf("checks %s, expected %s", got, want)
	}
}

func TestMisbehaviourOfRuntimesIsFoundAndExplained(t *testing.T) {
	oracle.All(t)
	if runtime.GOOS != "linux" {
		t.Skip("what a process uses is known on Linux only")
	}
	for i, m := range []misbehaviour{
		{fault: "recognises-nothing", check: "description", detail: "Recognises: empty", fix: "Mend the field"},
		{fault: "another-in-each-process", check: "restart", detail: "first in RuntimeDescription.Version", fix: "Describe what is constant"},
		{fault: "believes-symbols", check: "garbage", detail: "panic: no odd_state", fix: "Check lengths"},
		{fault: "computes-in-between", check: "idle", detail: "computes although no call is under way", fix: "End with the call"},
		{fault: "hangs", check: "batches", detail: "no answer within", fix: "Answer in time", change: func(o *verify.Options) { o.CallDeadline = 100 * time.Millisecond }},
		{fault: "exits-in-a-call", check: "batches", detail: "exited with status 3", fix: "Mend what ends the process"},
		{fault: "too-few", check: "batches", detail: "expected 257, one for each PC", fix: "Mend the field"},
		{fault: "forgets-runtimes", check: "garbage", detail: "unknown handle", fix: "Answer ErrObjectNotOpen"},
	} {
		if i%3 != 0 && !proof.IsRequested() {
			continue
		}
		t.Run(m.fault, func(t *testing.T) {
			o := verify.Options{Path: executable(t, sdk.RuntimePrefix+m.fault)}
			if m.change != nil {
				m.change(&o)
			}
			r := examine(t, o)
			for _, f := range r.Findings {
				if f.Check == m.check && f.Severity == archtest.Error && strings.Contains(f.Detail, m.detail) && strings.Contains(f.Fix, m.fix) && !r.Passed {
					return
				}
			}
			t.Errorf("not found; findings:\n%s", text(r))
		})
	}
}
