// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine"
)

// targets keeps targets open from one call to the next, the last used ones first.
type targets struct {
	engine  *engine.Engine
	options engine.Options

	mu   sync.Mutex
	list []*target
}

// target is an open target that calls use.
type target struct {
	*engine.Target
	key    string // its path, and the options of its view
	info   os.FileInfo
	view   *engine.Engine
	users  int
	isGone bool // it is closed by its last user
}

func newTargets(e *engine.Engine, o engine.Options) *targets { return &targets{engine: e, options: o} }

// Close closes the targets that no call uses; the others are closed by their last user. More may
// be opened.
func (t *targets) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.list {
		t.drop(x)
	}
	t.list = nil
}

// drop closes a target, now or after its last user. The lock is held.
func (t *targets) drop(x *target) {
	x.isGone = true
	if x.users == 0 {
		_ = x.view.Close() // with its target
	}
}

// release ends the use of a target.
func (t *targets) release(x *target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.users--
	if x.isGone && x.users == 0 {
		_ = x.view.Close()
	}
}

// open opens a file as a target by a view of the engine, or takes the open one if the file is
// still the same: of the same size and time. release is to be called in the end.
func (t *targets) open(f *file, change func(engine.Options) engine.Options) (*target, error) {
	o := change(t.options)
	key := fmt.Sprintf("%s\x00%d %v %v %v", f.path, o.MaxFrames, o.Registers, o.Lanes, o.Locals != nil)
	if o.Locals != nil {
		key += fmt.Sprintf(" %+v", *o.Locals)
	}
	if x := t.known(key, f.info); x != nil {
		return x, nil
	}
	view, err := t.engine.With(o)
	if err != nil {
		return nil, err
	}
	x := &target{key: key, info: f.info, view: view, users: 1}
	if x.Target, err = view.OpenFile(f.File, f.path); err != nil {
		_ = view.Close()
		return nil, fmt.Errorf("%w: give the path of a core, a minidump or a snapshot", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.Insert(t.list, 0, x)
	for len(t.list) > maxOpen {
		last := len(t.list) - 1
		t.drop(t.list[last])
		t.list = t.list[:last]
	}
	return x, nil
}

// known returns the open target of a file, and closes one of a file that has changed; nil: there
// is none.
func (t *targets) known(key string, info os.FileInfo) *target {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.list, func(x *target) bool { return x.key == key })
	if i < 0 {
		return nil
	}
	x := t.list[i]
	t.list = slices.Delete(t.list, i, i+1)
	if !isSame(x.info, info) {
		t.drop(x)
		return nil
	}
	t.list = slices.Insert(t.list, 0, x)
	x.users++
	return x
}

// isSame reports whether a file is as it was.
func isSame(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
