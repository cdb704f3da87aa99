// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// maxRefused is how many refused answers of one architecture are remembered.
const maxRefused = 1 << 12

// refusals remember the answers that were refused, by what was asked: a plugin that answers
// nonsense does so again, and reading the function for each wave in it takes long.
type refusals struct {
	mu    sync.Mutex
	known map[question]error
	calls map[string]bool // those of which some answer was refused
}

// A question is a call and a digest of its request.
type question struct {
	call string
	sum  [sha256.Size]byte
}

// questionOf is the question of a request; ok is false where it has no JSON form.
func questionOf(call string, req any) (q question, ok bool) {
	b, err := json.Marshal(anyPC(req))
	return question{call, sha256.Sum256(b)}, err == nil
}

// anyPC is a request for rows of functions without the PCs: an answer about a function that
// is bounded is the same for all of them.
func anyPC(req any) any {
	rules, ok := req.(*sdk.FrameRulesRequest)
	if !ok {
		return req
	}
	same := sdk.FrameRulesRequest{Object: rules.Object, Functions: slices.Clone(rules.Functions)}
	for i := range same.Functions {
		if f := &same.Functions[i]; f.Bounded && !f.Exits && len(f.Parts) == 0 {
			f.PC, f.Exact = f.Start, false
		}
	}
	return &same
}

// find is why an answer was refused to the same question; nil where none was.
func (r *refusals) find(call string, req any) error {
	r.mu.Lock()
	hasSome := r.calls[call]
	r.mu.Unlock()
	if !hasSome {
		return nil
	}
	q, ok := questionOf(call, req)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[q]
}

// add remembers why an answer was refused.
func (r *refusals) add(call string, req any, err error) {
	q, ok := questionOf(call, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || len(r.known) >= maxRefused {
		return
	}
	if r.known == nil {
		r.known, r.calls = map[question]error{}, map[string]bool{}
	}
	r.known[q], r.calls[call] = err, true
}
