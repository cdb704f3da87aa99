// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// This file lists the tasks of asyncio.

// ManagedThreads lists the tasks of asyncio.
func (p *plugin) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	g, err := p.find(req.Runtime)
	if err != nil {
		return nil, err
	}
	if g.failure != "" {
		return &sdk.ManagedThreadsAnswer{}, nil
	}
	l := &taskLister{reader: newReader(ctx, e, g), tasks: map[uint64]*task{}}
	l.find()
	threads := l.describe(req.Frames)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &sdk.ManagedThreadsAnswer{Threads: threads, Problems: l.problems}, nil
}

// taskLayout is where a task of the C module _asyncio has what, behind the head of objects. waiter is
// what it waits for. awaiters is the task that waits for it, or a set of them, and node its place in
// the list of tasks, from 3.14 on.
type taskLayout struct{ state, waiter, coroutine, name, awaiters, isSet, node offset }

// taskLayouts are the layouts of versions.
var taskLayouts = map[int]taskLayout{
	8:  {56, 88, 96, 104, none, none, none},
	9:  {64, 128, 136, 144, none, none, none},
	10: {72, 136, 144, 152, none, none, none},
	11: {72, 112, 120, 128, none, none, none},
	12: {72, 112, 120, 128, none, none, none},
	13: {80, 96, 104, 112, none, none, none},
	14: {88, 104, 112, 120, 80, 93, 136},
	15: {88, 104, 112, 120, 80, 93, 136},
}

// The states of a future.
const (
	futurePending = 0
	futureLast    = 2 // cancelled, finished
)

// task is a task of asyncio.
type task struct {
	address   uint64
	isC       bool
	name      string
	coroutine uint64
	waiter    uint64 // the future that it waits for; 0: none
	awaiters  []uint64
	carrier   *thread // the thread that executes it
	isPending bool
	err       error // why it is not known
}

// taskLister lists tasks.
type taskLister struct {
	*reader
	tasks    map[uint64]*task // by address
	order    []*task
	problems []string
}

func (l *taskLister) problem(format string, args ...any) {
	const maxProblems = 16
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}

// maxTasks bounds the tasks of a process.
const maxTasks = 1 << 17

// add adds the task at an address, once.
func (l *taskLister) add(address uint64) *task {
	if t := l.tasks[address]; t != nil {
		return t
	}
	if len(l.tasks) >= maxTasks {
		return nil
	}
	t := &task{address: address}
	l.tasks[address] = t
	l.order = append(l.order, t)
	return t
}

// find finds the tasks of all interpreters, and reads them.
func (l *taskLister) find() {
	threads, err := l.threads()
	if err != nil {
		l.problem("%v", err)
	}
	l.assign(threads)
	seen := map[*interpreter]bool{}
	for _, t := range threads {
		if !seen[t.interpreter] {
			seen[t.interpreter] = true
			l.findIn(t.interpreter, threads)
		}
		if l.layout.thread.tasks.isKnown() {
			l.addList(t.address, l.layout.thread.tasks)
			if running, err := l.pointer(t.address, l.layout.thread.runningTask); err == nil && running != 0 {
				l.setRunning(running, t)
			}
		}
	}
	addresses := make([]uint64, len(l.order))
	for i, t := range l.order {
		addresses[i] = t.address
	}
	l.mem.Prefetch(addresses, 256)
	for _, t := range l.order {
		if t.err = l.read(t); t.err != nil {
			l.problem("task at %#x: %v", t.address, t.err)
		}
	}
	if len(l.tasks) >= maxTasks {
		l.problem("there are %d tasks or more: no further ones are listed", maxTasks)
	}
}

// setRunning says that a thread executes a task.
func (l *taskLister) setRunning(address uint64, th *thread) {
	if t := l.add(address); t != nil {
		t.carrier = th
	}
}

// findIn finds the tasks that the module asyncio of an interpreter knows.
func (l *taskLister) findIn(i *interpreter, threads []*thread) {
	if l.layout.interpreter.tasks.isKnown() {
		l.addList(i.address, l.layout.interpreter.tasks)
	}
	modules, err := l.pointer(i.address, l.layout.interpreter.modules)
	if err == nil && modules == 0 {
		return
	}
	var variables map[string]uint64
	if err == nil {
		variables, err = l.moduleVariables(modules, "asyncio.tasks")
	}
	if err == nil && variables != nil && variables["_all_tasks"] == 0 && variables["_scheduled_tasks"] == 0 {
		err = errNoKey
	}
	if err != nil {
		l.problem("the tasks of asyncio.tasks: %v", err)
		return
	}
	for _, name := range []string{"_all_tasks", "_scheduled_tasks", "_eager_tasks"} {
		if value := variables[name]; value != 0 {
			l.addSet(value, name)
		}
	}
	l.addCurrent(variables["_current_tasks"], i, threads)
}

// moduleVariables returns the variables of a module; nil: it is not there.
func (l *taskLister) moduleVariables(modules uint64, module string) (map[string]uint64, error) {
	object, err := l.lookup(modules, module)
	if errors.Is(err, errNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	variables, err := l.pointer(object, l.layout.other.moduleDict)
	if err != nil {
		return nil, err
	}
	list, err := l.dict(variables, maxScan)
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64, len(list))
	for _, e := range list {
		if name, err := l.text(e.key, maxName); err == nil {
			out[name] = e.value
		}
	}
	return out, nil
}

// addList adds the tasks of a list of 3.14 and later, whose head is a member of the struct at an
// address.
func (l *taskLister) addList(address uint64, member offset) {
	place := taskLayouts[l.layout.minor].node
	head := address + uint64(member) //nolint:gosec // not negative
	node, err := l.mem.Pointer(head)
	seen := map[uint64]bool{}
	for err == nil && node != head && node != 0 {
		if err = checkPointer(node); err != nil {
			break
		}
		if seen[node] || len(seen) >= maxTasks {
			err = fmt.Errorf("its element at %#x follows itself", node)
			break
		}
		seen[node] = true
		l.add(node - uint64(place+l.layout.object.size)) //nolint:gosec // known in these versions
		node, err = l.mem.Pointer(node)
	}
	if err != nil {
		l.problem("the list of tasks at %#x: %v", head, err)
	}
}

// addSet adds the tasks of a WeakSet, or of a set.
func (l *taskLister) addSet(object uint64, name string) {
	if c, err := l.class(object); err == nil && c.name == "WeakSet" {
		if object, err = l.attribute(object, "data"); err != nil {
			l.problem("asyncio.tasks.%s: %v", name, err)
			return
		}
	}
	list, err := l.set(object)
	if err != nil {
		l.problem("asyncio.tasks.%s: %v", name, err)
		return
	}
	for _, o := range list {
		if l.isClass(o, "weakref", "weakref.ReferenceType") {
			if o, err = l.pointer(o, l.layout.other.weakTarget); err != nil {
				l.problem("asyncio.tasks.%s: %v", name, err)
			}
			if err != nil || l.isNone(o) {
				continue
			}
		}
		l.add(o)
	}
}

// maxSet bounds the places of a set.
const maxSet = 1 << 22

// set returns the objects of a set.
func (r *reader) set(object uint64) (list []uint64, err error) {
	if c, err := r.class(object); err != nil || c.name != "set" && c.name != "frozenset" {
		return nil, fmt.Errorf("object at %#x, expected a set", object)
	}
	l := &r.layout.sequence
	mask, err := r.pointer(object, l.setMask)
	if err != nil {
		return nil, err
	}
	if mask&(mask+1) != 0 || mask >= maxSet {
		return nil, fmt.Errorf("set at %#x has %d places, expected a power of 2", object, mask+1)
	}
	used, err := r.pointer(object, l.setUsed)
	if err != nil {
		return nil, err
	}
	table, err := r.pointer(object, l.setTable)
	if err != nil {
		return nil, err
	}
	entries, err := r.pointers(table, (mask+1)*2)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(entries); i += 2 {
		// A removed object has left an object with the hash -1.
		if key, hash := entries[i], entries[i+1]; key != 0 && hash != 1<<64-1 {
			list = append(list, key)
		}
	}
	if uint64(len(list)) != used {
		return nil, fmt.Errorf("set at %#x has %d objects, expected %d", object, len(list), used)
	}
	return list, nil
}

// addCurrent adds the tasks that are executed: asyncio.tasks._current_tasks has them, by their loop.
// The thread is the one that the loop says.
func (l *taskLister) addCurrent(dict uint64, i *interpreter, threads []*thread) {
	if dict == 0 {
		return
	}
	list, err := l.dict(dict, maxTasks)
	if err != nil {
		l.problem("asyncio.tasks._current_tasks: %v", err)
		return
	}
	for _, e := range list {
		value, err := l.attribute(e.key, "_thread_id")
		if err != nil {
			continue
		}
		id, err := l.smallInt(value)
		if err != nil {
			continue
		}
		for _, t := range threads {
			if t.threadID == id && t.interpreter == i {
				l.setRunning(e.value, t)
			}
		}
	}
}

// read reads a task.
func (l *taskLister) read(t *task) error {
	c, err := l.class(t.address)
	if err != nil {
		return err
	}
	if t.isC = c.name == "_asyncio.Task" || l.isDerived(c, "_asyncio.Task"); t.isC {
		return l.readStruct(t)
	}
	return l.readAttributes(t)
}

// readStruct reads a task of the C module.
func (l *taskLister) readStruct(t *task) error {
	at := taskLayouts[l.layout.minor]
	head := l.layout.object.size
	state, err := l.int(t.address, head+at.state)
	if err != nil {
		return err
	}
	if state < futurePending || state > futureLast {
		return fmt.Errorf("its state is %d, expected at most %d", state, futureLast)
	}
	t.isPending = state == futurePending
	if t.coroutine, err = l.pointer(t.address, head+at.coroutine); err != nil {
		return err
	}
	if t.waiter, err = l.pointer(t.address, head+at.waiter); err != nil {
		return err
	}
	name, err := l.pointer(t.address, head+at.name)
	if err != nil {
		return err
	}
	t.name = l.taskName(name)
	if at.awaiters.isKnown() {
		t.awaiters = l.awaiters(t.address)
	}
	return nil
}

// awaiters returns the futures that wait for one of the C module, from 3.14 on.
func (l *taskLister) awaiters(address uint64) []uint64 {
	at, head := taskLayouts[l.layout.minor], l.layout.object.size
	object, err := l.pointer(address, head+at.awaiters)
	if err != nil || object == 0 {
		return nil
	}
	if isSet, err := l.byte(address, head+at.isSet); err != nil || isSet == 0 {
		return []uint64{object}
	}
	list, _ := l.set(object)
	return list
}

// maxTaskName bounds the name of a task in characters.
const maxTaskName = 1 << 10

// taskName returns the name of a task: a str, or an int until it was asked for, from 3.12 on.
func (l *taskLister) taskName(object uint64) string {
	if text, err := l.text(object, maxTaskName); err == nil {
		return text
	}
	if n, err := l.smallInt(object); err == nil {
		return defaultName + strconv.FormatUint(n, 10)
	}
	return ""
}

// defaultName begins the names that asyncio gives.
const defaultName = "Task-"

// readAttributes reads a task of asyncio's Python module, or one like it.
func (l *taskLister) readAttributes(t *task) error {
	list, err := l.attributes(t.address, maxScan)
	if err != nil {
		return err
	}
	values := map[string]uint64{}
	for _, e := range list {
		if name, err := l.text(e.key, maxName); err == nil {
			values[name] = e.value
		}
	}
	if t.coroutine = values["_coro"]; t.coroutine == 0 {
		return fmt.Errorf("it has no attribute _coro, expected a task of asyncio")
	}
	state, err := l.text(values["_state"], maxName)
	if err != nil {
		return fmt.Errorf("its _state: %w", err)
	}
	t.isPending = state == "PENDING"
	if waiter := values["_fut_waiter"]; waiter != 0 && !l.isNone(waiter) {
		t.waiter = waiter
	}
	t.name = l.taskName(values["_name"])
	return nil
}

// numbered is the name of a task that has not got one of the program.
var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Task-([1-9][0-9]{0,17})$`) })

// numbers gives each task a number: the one in the name that asyncio gave it, or one that none has.
func numbers(tasks []*task) map[*task]uint64 {
	out := make(map[*task]uint64, len(tasks))
	taken, last := map[uint64]bool{}, uint64(0)
	var left []*task
	for _, t := range tasks {
		found := numbered().FindStringSubmatch(t.name)
		if found == nil {
			left = append(left, t)
			continue
		}
		n, _ := strconv.ParseUint(found[1], 10, 64)
		if taken[n] {
			left = append(left, t)
			continue
		}
		out[t], taken[n], last = n, true, max(last, n)
	}
	for _, t := range left {
		last++
		out[t] = last
	}
	return out
}

// describe describes the tasks that have not ended, by their numbers.
func (l *taskLister) describe(withFrames bool) []sdk.ManagedThread {
	var live []*task
	for _, t := range l.order {
		if t.err == nil && t.isPending {
			live = append(live, t)
		}
	}
	number := numbers(live)
	waits := l.waits(live)
	lists := make([]*awaiting, len(live))
	for i, t := range live {
		if lists[i] = (&awaiting{}); withFrames && t.carrier == nil {
			lists[i].next = t.coroutine
		}
	}
	l.readAwaits(lists)
	out := make([]sdk.ManagedThread, len(live))
	for i, t := range live {
		m := &out[i]
		m.Number, m.Name = number[t], t.name
		for _, other := range waits[t] {
			m.WaitsFor = append(m.WaitsFor, number[other])
		}
		slices.Sort(m.WaitsFor)
		l.setTaskState(m, t)
		if lists[i].err != nil {
			m.Problem = lists[i].err.Error()
		}
		frames := slices.Clone(lists[i].frames)
		slices.Reverse(frames)
		m.Frames = managedFrames(frames, nil)
	}
	slices.SortFunc(out, func(a, b sdk.ManagedThread) int {
		switch {
		case a.Number < b.Number:
			return -1
		case a.Number > b.Number:
			return 1
		}
		return 0
	})
	return out
}

// setTaskState sets the state of a thread that stands for a task.
func (l *taskLister) setTaskState(m *sdk.ManagedThread, t *task) {
	switch {
	case t.carrier != nil:
		m.State = "running"
		if t.carrier.hasHandle {
			m.Carrier, m.IsMounted = l.idOf(t.carrier.handle), true
		} else {
			m.Problem = "the thread that executes it is not known"
		}
	case t.waiter != 0:
		m.State = "waiting"
		if c, err := l.class(t.waiter); err == nil {
			m.Reason = c.name
		}
	default:
		m.State = "ready"
	}
}

// idOf returns the ID of a thread of the target.
func (r *reader) idOf(handle uint64) string {
	for i := range r.request.Threads {
		if r.request.Threads[i].Thread == handle {
			return r.request.Threads[i].ID
		}
	}
	return ""
}

// Bounds of what a task waits for.
const (
	maxWaits = 1 << 10
	maxDepth = 8
)

// waits returns the tasks that each task waits for.
func (l *taskLister) waits(live []*task) map[*task][]*task {
	out := map[*task][]*task{}
	isLive := make(map[uint64]*task, len(live))
	for _, t := range live {
		isLive[t.address] = t
	}
	link := func(waiter, task *task) {
		if waiter != nil && task != nil && waiter != task && len(out[waiter]) < maxWaits && !slices.Contains(out[waiter], task) {
			out[waiter] = append(out[waiter], task)
		}
	}
	for _, t := range live {
		if t.waiter == 0 {
			continue
		}
		for _, address := range l.children(t.waiter) {
			link(t, isLive[address])
		}
	}
	for _, t := range live {
		next := t.awaiters
		for range maxDepth { // through futures that are no tasks
			var further []uint64
			for _, address := range next {
				if by := isLive[address]; by != nil {
					link(by, t)
				} else if l.isClass(address, "_asyncio.Future") && len(further) < maxWaits {
					further = append(further, l.awaiters(address)...)
				}
			}
			if next = further; len(next) == 0 {
				break
			}
		}
	}
	return out
}

// children returns the futures that a future stands for: itself, and the ones that gather was called with.
func (l *taskLister) children(future uint64) []uint64 {
	list := []uint64{future}
	if c, err := l.class(future); err != nil || c.name != "_GatheringFuture" {
		return list
	}
	value, err := l.attribute(future, "_children")
	if err != nil {
		return list
	}
	items, _, err := l.items(value, maxWaits)
	if err != nil {
		return list
	}
	return append(list, items...)
}
