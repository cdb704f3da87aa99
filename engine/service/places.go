// SPDX-License-Identifier: Apache-2.0

package service

import "sync"

// places bounds how many requests are under way, of all callers and of each. There is no queue.
type places struct {
	most, ofCaller int

	mu    sync.Mutex
	taken int
	each  map[string]int // by caller
}

func newPlaces(most, ofCaller int) *places {
	return &places{most: most, ofCaller: ofCaller, each: map[string]int{}}
}

// enter takes a place, which leave returns. The error is errBusy.
func (p *places) enter(caller string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.each[caller] >= p.ofCaller {
		return nil, errBusy
	}
	p.taken++
	p.each[caller]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.each[caller]--; p.each[caller] == 0 {
			delete(p.each, caller)
		}
	}, nil
}

// used returns how many places are taken.
func (p *places) used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
