// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// maxRefused bounds the number of refused answers of one architecture that are kept.
const maxRefused = 1 << 12

// refusals keeps the errors of refused answers by request: a plugin that answers nonsense
// does so again, and reading the function for each wave in it takes long.
type refusals struct {
	mu    sync.Mutex
	known map[requestKey]error
	calls map[string]bool // calls with a refused answer
}

// requestKey is a call and a digest of its request.
type requestKey struct {
	call string
	sum  [sha256.Size]byte
}

// keyOf is the key of a request; ok is false where it cannot be written as JSON.
func keyOf(call string, req any) (q requestKey, ok bool) {
	b, err := json.Marshal(anyPC(req))
	return requestKey{call, sha256.Sum256(b)}, err == nil
}

// anyPC is a request for rows of functions without the PCs: the answer about a function
// with known bounds is the same for all PCs.
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

// find returns why an answer to the same request was refused; nil where none was.
func (r *refusals) find(call string, req any) error {
	r.mu.Lock()
	hasSome := r.calls[call]
	r.mu.Unlock()
	if !hasSome {
		return nil
	}
	q, ok := keyOf(call, req)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[q]
}

// add records why an answer was refused.
func (r *refusals) add(call string, req any, err error) {
	q, ok := keyOf(call, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || len(r.known) >= maxRefused {
		return
	}
	if r.known == nil {
		r.known, r.calls = map[requestKey]error{}, map[string]bool{}
	}
	r.known[q], r.calls[call] = err, true
}
