package profile

// A stackTree finds the stacks that go on from a stack. Most stacks that are
// looked for are new, and so is what goes on from them: those cost a look at one
// entry, where a hash table would cost a miss of the cache and its growth.
type stackTree struct {
	nodes []stackNode // by stack
	// wide are the stacks that go on from one that has more than maxSiblings; those
	// that came first are in its list.
	wide map[Stack]uint32
}

// A stackNode is a stack in the list of those that go on from its caller.
type stackNode struct {
	frame uint32 // of the stack
	first uint32 // the stack that went on from it first; 0: none does
	next  uint32 // the one that went on from its caller next; 0: none did
}

// maxSiblings is how many stacks are in a list. Functions call from a few places,
// and those that call from hundreds are few.
const maxSiblings = 16

func (t *stackTree) init() { t.nodes = make([]stackNode, 1, 1<<12) }

// push is the number of a stack; isNew says that it was not known. The stack that was
// asked for last comes first in its list: it is likely to be met again.
func (t *stackTree) push(s Stack) (stack uint32, isNew bool) {
	first := t.nodes[s.Caller].first
	before := uint32(0)
	n := 0
	for at := first; at != 0; n++ {
		node := &t.nodes[at]
		if node.frame == s.Frame {
			if before != 0 {
				t.nodes[before].next = node.next
				node.next, t.nodes[s.Caller].first = first, at
			}
			return at, false
		}
		before, at = at, node.next
	}
	if n == maxSiblings {
		return t.pushWide(s)
	}
	stack = uint32(len(t.nodes))
	t.nodes[s.Caller].first = stack
	t.add(s, first)
	return stack, true
}

// pushWide is push for a stack whose caller has a full list.
func (t *stackTree) pushWide(s Stack) (stack uint32, isNew bool) {
	if stack, ok := t.wide[s]; ok {
		return stack, false
	}
	if t.wide == nil {
		t.wide = map[Stack]uint32{}
	}
	stack = uint32(len(t.nodes))
	t.wide[s] = stack
	t.add(s, 0)
	return stack, true
}

func (t *stackTree) add(s Stack, next uint32) {
	t.nodes = append(roomFor(t.nodes), stackNode{frame: s.Frame, next: next})
}

// roomFor is a list that has room for one more. It grows by the factor two, which
// copies less than append does.
func roomFor[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return append(make([]T, 0, 2*len(list)+1), list...)
}
