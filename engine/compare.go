// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/beside"
	"github.com/unwindd/unwindd/engine/internal/compared"
	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/internal/label"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// CompareOptions are the options of a Comparer.
type CompareOptions struct {
	// Labels are rules that make labels of targets.
	Labels []LabelRule
	// Own are further labels of targets, by their paths: of an archive, of all its members. They come before
	// all others.
	Own map[string]map[string]string
	// ByThread compares the threads of targets with each other, not the targets.
	ByThread bool
	// CrashedOnly compares only the threads that crashed. What WritePart writes has the others, too, and says that
	// they are not compared: merging parts takes over the choice for all.
	CrashedOnly bool
	// Jobs is how many targets are walked at a time; 0: as many as there are processors.
	Jobs int
	// Elsewhere, where it is not nil, has another machine walk an open target, and returns what WritePart of a
	// Comparer there wrote of it alone. The target has the path and the labels there that it has here. An error is
	// why the target could not be read. Several goroutines call it.
	Elsewhere func(ctx context.Context, t *Target, path string, labels map[string]string) (part []byte, err error)
}

// Comparer compares the stacks of many targets. It keeps their distinct stacks, not the targets. It may be
// used concurrently.
type Comparer struct {
	engine  *Engine
	options CompareOptions

	mu   sync.Mutex
	idle []*comparer // that no goroutine uses; they have all that was added
}

// comparer adds targets, for one goroutine at a time.
type comparer struct {
	reader compared.Reader
	part   *comparison.Part
}

// NewComparer returns a Comparer without targets. Targets are opened with the options of e, of which
// variables, registers and lanes are not needed.
func (e *Engine) NewComparer(o CompareOptions) *Comparer {
	return &Comparer{engine: e.forMany(), options: o}
}

// forMany is a view of the engine for many targets that lie in the same folders: what lies in these is
// looked up once. It leaves out what comparisons have no use for.
func (e *Engine) forMany() *Engine {
	options := e.options
	options.Registers, options.Lanes, options.Locals, options.SourceLines = false, false, nil, 0
	view, err := e.With(options)
	if err != nil {
		return e // its options are valid
	}
	view.indexes, view.devices = object.NewFolderIndexes(), beside.NewFolders(isOfSections)
	return view
}

// take returns a comparer for the calling goroutine, until it is put back.
func (c *Comparer) take() *comparer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return w
	}
	return c.newComparer()
}

func (c *Comparer) newComparer() *comparer {
	return &comparer{part: comparison.New(comparison.Options{ByThread: c.options.ByThread, CrashedOnly: c.options.CrashedOnly})}
}

func (c *Comparer) put(w *comparer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}

// AddPaths walks targets and adds them: cores, minidumps, snapshots, IDs of living processes, reports of
// `stack --format json`, parts, dumps of flight recorders and traces of Kineto. A target that cannot be
// read is added with the reason. The error is of ctx alone: targets that were not walked before are missing
// then. done is called after each path, by one goroutine at a time; nil: it is not.
func (c *Comparer) AddPaths(ctx context.Context, paths []string, done func()) error {
	jobs := c.options.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	next, group := make(chan string), sync.WaitGroup{}
	var calling sync.Mutex
	for range min(jobs, len(paths)) {
		group.Go(func() {
			w := c.take()
			defer c.put(w)
			for path := range next {
				c.addPath(ctx, w, path)
				if done != nil && ctx.Err() == nil {
					calling.Lock()
					done()
					calling.Unlock()
				}
			}
		})
	}
	for _, path := range paths {
		select {
		case next <- path:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	group.Wait()
	return ctx.Err()
}

// Add walks an open target and adds it. A target of which ctx ends the walk is not added.
func (c *Comparer) Add(ctx context.Context, t *Target) {
	w := c.take()
	defer c.put(w)
	c.add(ctx, w, t, t.Info().Path)
}

// AddReport adds a target that `stack --format json` reported, by a name, or a part that WritePart wrote, whose
// targets have their names. The error names the place in it where it cannot be read, and nothing is added.
func (c *Comparer) AddReport(r io.Reader, name string) error {
	w := c.take()
	defer c.put(w)
	return c.addReport(w, r, name)
}

// WritePart writes all that was added so far, for AddReport of another Comparer.
func (c *Comparer) WritePart(w io.Writer) error {
	return c.merged().Write(w)
}

// Comparison returns the comparison of all targets that were added.
func (c *Comparer) Comparison() *trace.Comparison { return resultOf(c.merged()) }

// merged returns all that was added, as far as no goroutine adds to it.
func (c *Comparer) merged() *comparison.Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		c.idle = []*comparer{c.newComparer()}
	}
	all := c.idle[0]
	for _, w := range c.idle[1:] {
		all.part.Merge(w.part)
	}
	c.idle = c.idle[:1]
	return all.part
}

// add walks an open target and adds it.
func (c *Comparer) add(ctx context.Context, w *comparer, t *Target, path string) {
	if c.options.Elsewhere != nil {
		c.addElsewhere(ctx, w, t, path)
		return
	}
	var one *comparison.Target
	err := guarded(func() (err error) {
		one, err = c.convert(ctx, w, t, path)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		one = c.unread(path, err)
	}
	w.part.Add(one)
}

// addElsewhere has an open target walked by another machine and adds it.
func (c *Comparer) addElsewhere(ctx context.Context, w *comparer, t *Target, path string) {
	data, err := c.options.Elsewhere(ctx, t, path, c.withOwn(path, t.Labels(c.options.Labels)))
	if ctx.Err() != nil {
		return
	}
	var part *comparison.Part
	if err == nil {
		part, err = comparison.Read(bytes.NewReader(data))
	}
	if err == nil && part.Len() != 1 {
		err = fmt.Errorf("a part of a comparison with %d targets, expected one", part.Len())
	}
	if err != nil {
		w.part.Add(c.unread(path, err))
		return
	}
	w.part.Merge(part)
}

// guarded is object.Guard for what may have a defect, too: one target among thousands does not end the
// comparison of the others.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading it failed by a defect of unwindd: %v", r)
		}
	}()
	return object.Guard(f)
}

// unread is a target that could not be read.
func (c *Comparer) unread(path string, err error) *comparison.Target {
	return &comparison.Target{Path: path, Unread: err.Error(), Labels: c.labelsOf(&label.Start{Path: path})}
}

// labelsOf returns labels of a target that is not open.
func (c *Comparer) labelsOf(s *label.Start) map[string]string {
	rules := make([]label.Rule, len(c.options.Labels))
	for i := range rules {
		rules[i] = c.options.Labels[i].rule
	}
	return c.withOwn(s.Path, label.Of(s, rules))
}

// convert walks a target and returns it as it is compared.
func (c *Comparer) convert(ctx context.Context, w *comparer, t *Target, path string) (*comparison.Target, error) {
	p, err := walked(ctx, &w.reader, t)
	if err != nil {
		return nil, err
	}
	p.Path, p.Labels = path, c.withOwn(path, t.Labels(c.options.Labels))
	return w.reader.Target(p), nil
}
