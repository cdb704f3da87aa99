package value

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/locexpr"
)

// This file reads an object by its form. Nothing that the object says is believed
// before it was checked: many variables have not been made yet.

// A run reads one object by a form.
type run struct {
	r      *Reader
	form   *boundForm
	object locexpr.Location
	slots  []operand
	depth  int
	v      *Value

	isWhole   bool   // the value was replaced by what stands for it
	hasBegun  bool   // elements are being read: what goes wrong is a problem of the rest
	expected  uint64 // elements that the object says that it has
	isCounted bool
	found     uint64 // elements, those that are not shown too
}

var (
	// errOtherForm says that the object is not one that the form is for.
	errOtherForm = errors.New("the form is for other objects")
	// errEnough says that nothing more is shown.
	errEnough = errors.New("enough")
	// errTooLong says that too many places were looked at.
	errTooLong = errors.New("more places would have to be looked at than are")
)

// A brokenError says that an object is not as those are that were made.
type brokenError struct{ form, reason string }

func (e *brokenError) Error() string {
	return "not a valid " + e.form + ": " + e.reason
}

func (r *run) broken(format string, args ...any) error {
	return &brokenError{r.form.name, fmt.Errorf(format, args...).Error()}
}

// maxSteps bounds the places that are looked at for one variable: slots of hash tables,
// nodes of chains.
const maxSteps = 1 << 15

// memory is where an address is that an object holds.
func (r *run) memory(address uint64) locexpr.Location {
	return locexpr.MemoryLocation(locexpr.DefaultSpace, address).WithScope(r.r.ctx.Scope())
}

// load reads an integer of at most 8 bytes.
func (r *run) load(l locexpr.Location, size uint64) (uint64, error) {
	b := r.r.word[:size]
	if err := l.Read(r.r.ctx, b, size*8); err != nil {
		return 0, err
	}
	return integer(b, r.r.ctx.ByteOrder()), nil
}

// loadBits reads a bit field.
func (r *run) loadBits(l locexpr.Location, bits uint64) (uint64, error) {
	b := r.r.word[:(bits+7)/8]
	clear(b)
	if err := l.Read(r.r.ctx, b, bits); err != nil {
		return 0, err
	}
	n := integer(b, r.r.ctx.ByteOrder())
	if pad := bits % 8; r.r.ctx.ByteOrder() == locexpr.BigEndian && pad != 0 {
		n >>= 8 - pad
	}
	return n, nil
}

// number evaluates an expression of a clause.
func (r *run) number(b *bound) (uint64, error) {
	o, err := b.eval(r)
	return o.n, err
}

// step counts a place that is looked at.
func (r *run) step() error {
	if r.r.steps--; r.r.steps < 0 {
		return errTooLong
	}
	return nil
}

// do executes the clauses from one on.
func (r *run) do(i int) error {
	for ; i < len(r.form.clauses); i++ {
		c := &r.form.clauses[i]
		switch c.op {
		case opFor:
			r.hasBegun = true
			return r.forEach(c, i+1)
		case opFollow:
			r.hasBegun = true
			return r.follow(c, i+1)
		case opTree:
			r.hasBegun = true
			return r.tree(c, i+1)
		case opBTree:
			r.hasBegun = true
			return r.btree(c, i+1)
		case opIf:
			if n, err := r.number(c.exprs[0]); err != nil || n == 0 {
				return err
			}
		default:
			if err := r.one(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// one executes a clause that is not repeated.
func (r *run) one(c *boundClause) (err error) {
	switch c.op {
	case opLet, opPlace:
		if x := c.exprs[0]; x.class != classType || x.eval != nil {
			r.slots[c.slot], err = x.eval(r)
		}
		return err
	case opWhen:
		n, err := r.number(c.exprs[0])
		if err == nil && n == 0 {
			err = errOtherForm
		}
		return err
	case opCheck:
		n, err := r.number(c.exprs[0])
		if err == nil && n == 0 {
			err = r.broken("%s", c.text)
		}
		return err
	case opCount:
		r.expected, err = r.number(c.exprs[0])
		r.isCounted = true
		if err == nil && r.expected > 1<<48 {
			err = r.broken("it would have %d elements", r.expected)
		}
		return err
	case opText:
		return r.summary(c)
	case opString, opUTF8:
		return r.text(c)
	case opLeaves:
		for i, x := range c.leaves {
			r.hasBegun = true
			if err := r.emit("["+strconv.Itoa(i)+"]", Plain, x); err != nil {
				return err
			}
		}
		return nil
	case opItem:
		return r.emit("["+strconv.FormatUint(r.found, 10)+"]", Plain, c.exprs[0])
	case opEntry:
		return r.entry(c)
	case opMember:
		return r.emit(c.name, Plain, c.exprs[0])
	case opWhole:
		return r.whole(c)
	}
	return nil
}

// forEach executes what follows for each number below one.
func (r *run) forEach(c *boundClause, next int) error {
	n, err := r.number(c.exprs[0])
	if err != nil {
		return err
	}
	for i := uint64(0); i < n; i++ {
		if err := r.step(); err != nil {
			return err
		}
		r.slots[c.slot] = operand{n: i}
		if err := r.do(next); err != nil {
			return err
		}
	}
	return nil
}

// follow executes what follows for each node of a chain. One that comes back to a node
// is cut: by Brent's method, one node further back is remembered.
func (r *run) follow(c *boundClause, next int) error {
	o, err := c.exprs[0].eval(r)
	before := o.n
	for steps, power := uint64(0), uint64(1); err == nil; steps++ {
		if err := r.step(); err != nil {
			return err
		}
		r.slots[c.slot] = o
		var goes uint64
		if goes, err = r.number(c.exprs[1]); err != nil || goes == 0 {
			return err
		}
		if steps > 0 && o.n == before {
			return r.broken("the chain of nodes is a circle")
		}
		if steps == power {
			before, power = o.n, power*2
		}
		if err = r.do(next); err != nil {
			return err
		}
		r.slots[c.slot] = o
		o, err = c.exprs[2].eval(r)
	}
	return err
}

// maxTreeDepth is deeper than a balanced tree in 64 bits of address space is.
const maxTreeDepth = 128

// tree executes what follows for each node of a binary tree, in order. Each node must
// name the one above as its parent, so none is met twice.
func (r *run) tree(c *boundClause, next int) error {
	root, err := c.exprs[0].eval(r)
	if err != nil || root.n == 0 {
		return err
	}
	return r.subtree(c, next, root, operand{}, 0)
}

func (r *run) subtree(c *boundClause, next int, node, above operand, depth int) error {
	if depth > maxTreeDepth {
		return r.broken("the tree is more than %d nodes deep", maxTreeDepth)
	}
	if err := r.step(); err != nil {
		return err
	}
	r.slots[c.slot] = node
	if depth > 0 {
		parent, err := r.number(c.exprs[1])
		if err != nil {
			return err
		}
		if parent != above.n {
			return r.broken("the node at %#x has another parent than the one that leads to it", node.n)
		}
	}
	left, err := c.exprs[2].eval(r)
	if err != nil {
		return err
	}
	if left.n != 0 {
		if err := r.subtree(c, next, left, node, depth+1); err != nil {
			return err
		}
		r.slots[c.slot] = node
	}
	if err := r.do(next); err != nil {
		return err
	}
	r.slots[c.slot] = node
	right, err := c.exprs[3].eval(r)
	if err != nil || right.n == 0 {
		return err
	}
	return r.subtree(c, next, right, node, depth+1)
}

// maxBTreeHeight is higher than a B-tree of 2^64 nodes is, of at least 6 entries each.
const maxBTreeHeight = 24

// btree executes what follows for each place in the nodes of a B-tree, in order.
func (r *run) btree(c *boundClause, next int) error {
	root, err := c.exprs[0].eval(r)
	if err != nil {
		return err
	}
	height, err := r.number(c.exprs[1])
	if err != nil {
		return err
	}
	if height > maxBTreeHeight {
		return r.broken("the tree is %d nodes high", height)
	}
	return r.bnode(c, next, root, height)
}

func (r *run) bnode(c *boundClause, next int, node operand, height uint64) error {
	if err := r.step(); err != nil {
		return err
	}
	at := func(i uint64) { r.slots[c.slot], r.slots[c.indexSlot] = node, operand{n: i} }
	at(0)
	size, err := r.number(c.exprs[2])
	if err != nil {
		return err
	}
	for i := uint64(0); i <= size; i++ {
		at(i)
		if height > 0 {
			child, err := c.exprs[3].eval(r)
			if err == nil {
				err = r.bnode(c, next, child, height-1)
			}
			if err != nil {
				return err
			}
			at(i)
		}
		if i == size {
			break
		}
		if err := r.step(); err != nil {
			return err
		}
		if err := r.do(next); err != nil {
			return err
		}
	}
	return nil
}

// isFull counts an element and says whether it is not shown any more.
func (r *run) isFull() (bool, error) {
	if r.isCounted && r.found >= r.expected {
		return true, r.broken("it has more than the %d elements that it counts", r.expected)
	}
	shown := uint64(len(r.v.Children))
	r.found++
	switch {
	case r.r.left <= 0, shown >= uint64(r.r.limits.Elements):
		if r.isCounted {
			r.v.More = r.expected - shown
			return true, errEnough
		}
		r.v.More++
		return true, nil
	case shown >= maxFailures && allFailed(r.v.Children):
		r.v.More = max(r.expected, shown) - shown
		return true, errEnough
	}
	return false, nil
}

// isTooDeep says of an object of a type whether it lies too deep to be shown.
func (r *run) isTooDeep(types ...*dwarf.Type) bool {
	if r.depth+1 < r.r.limits.Depth {
		return false
	}
	for _, t := range types {
		if t == nil || !r.r.isLeaf(t) {
			return true
		}
	}
	return false
}

// emit reads an element or a part.
func (r *run) emit(name string, role Role, b *bound) error {
	if full, err := r.isFull(); full || err != nil {
		return err
	}
	o, t, err := r.object1(b)
	if err != nil {
		return err
	}
	if r.isTooDeep(t) {
		r.v.IsDeep = true
		return errEnough
	}
	child := r.value(name, b, o, t)
	child.Role = role
	r.v.Children = append(r.v.Children, child)
	return nil
}

// object1 evaluates an expression, and says the type of what it gives.
func (r *run) object1(b *bound) (operand, *dwarf.Type, error) {
	o, err := b.eval(r)
	t := b.t
	if o.t != nil {
		t = o.t
	}
	return o, t, err
}

// value reads what an expression gave.
func (r *run) value(name string, b *bound, o operand, t *dwarf.Type) Value {
	if b.class == classNumber {
		v := Value{Name: name, Status: OK}
		r.r.left--
		v.setText(strconv.FormatUint(o.n, 10))
		if t != nil {
			r.r.numberValue(&v, t, o.n)
		}
		return v
	}
	if t == nil {
		v := Value{Name: name}
		v.fail(errors.New("nothing says which type it has"))
		return v
	}
	if b.field != nil {
		return r.r.field(b.field, t, o.l)
	}
	return r.r.read(name, t, o.l, r.depth+1)
}

// numberValue makes the value of a type that a number is.
func (r *Reader) numberValue(v *Value, t *dwarf.Type, n uint64) {
	v.Type = t.String()
	plain, err := t.Plain()
	if err != nil {
		return
	}
	switch {
	case plain.Base != nil:
		v.setText(r.baseText(plain.Base, locexpr.TypedValue(plain.Base, n)))
	case plain.Kind == dwarf.KindPointer || plain.Kind == dwarf.KindSubroutine:
		if v.setText(fmt.Sprintf("%#x", n)); n == 0 {
			v.setText("0x0")
		} else if name, offset := r.frame.Symbol(n); name != "" {
			v.setText(v.Text + " " + symbolText(name, offset))
		}
	}
}

// entry reads a key and a value.
func (r *run) entry(c *boundClause) error {
	at := r.found
	if full, err := r.isFull(); full || err != nil {
		return err
	}
	key, keyType, err := r.object1(c.exprs[0])
	if err != nil {
		return err
	}
	value, valueType, err := r.object1(c.exprs[1])
	if err != nil {
		return err
	}
	if r.isTooDeep(keyType, valueType) {
		r.v.IsDeep = true
		return errEnough
	}
	e := Value{Name: "[" + strconv.FormatUint(at, 10) + "]", Role: Entry, Status: OK, shape: structure}
	e.Children = []Value{
		r.value("key", c.exprs[0], key, keyType),
		r.value("value", c.exprs[1], value, valueType),
	}
	e.setStatus()
	r.v.Children = append(r.v.Children, e)
	return nil
}

// whole reads what stands for the object: alone, or behind its summary.
func (r *run) whole(c *boundClause) error {
	b := c.exprs[0]
	o, t, err := r.object1(b)
	if err != nil {
		return err
	}
	if r.v.HasText {
		r.hasBegun = true
		if r.isTooDeep(t) {
			r.v.IsDeep = true
			return nil
		}
		r.v.shape = wrapped
		r.v.Children = append(r.v.Children, r.value("value", b, o, t))
		return nil
	}
	depth := r.depth
	if depth >= r.r.limits.Depth && !r.r.isLeaf(t) {
		r.v.IsDeep = true
		return nil
	}
	r.depth = depth - 1 // it is the object itself
	child := r.value(r.v.Name, b, o, t)
	r.depth = depth
	child.Type = r.v.Type
	*r.v = child
	r.isWhole = true
	return errEnough
}

// summary sets the value's text, if it has none yet.
func (r *run) summary(c *boundClause) error {
	if r.v.HasText {
		return nil
	}
	if len(c.exprs) > 0 {
		if n, err := r.number(c.exprs[0]); err != nil || n == 0 {
			return err
		}
	}
	var b strings.Builder
	for i, p := range c.clause.parts {
		x := c.parts[i]
		switch {
		case p.isName:
			b.WriteString(r.form.name)
			continue
		case p.isType:
			b.WriteString(r.v.Type)
			continue
		case p.isShort:
			b.WriteString(r.form.short)
			continue
		case x == nil:
			b.WriteString(p.text)
			continue
		}
		if x.class == classType && x.eval == nil {
			b.WriteString(typeText(x.t))
			continue
		}
		o, err := x.eval(r)
		if err != nil {
			return err
		}
		switch {
		case x.class == classType && o.t == nil:
			return r.broken("nothing says which type it holds")
		case x.class == classType:
			b.WriteString(typeText(o.t))
		case p.isCode:
			b.WriteString(r.symbol(o.n))
		case p.isHex:
			fmt.Fprintf(&b, "%#x", o.n)
		case isSignedNumber(x):
			b.WriteString(strconv.FormatInt(int64(o.n), 10))
		default:
			b.WriteString(strconv.FormatUint(o.n, 10))
		}
		switch {
		case p.isCount && o.n == 1:
			b.WriteString(" element")
		case p.isCount:
			b.WriteString(" elements")
		}
	}
	r.v.setText(b.String())
	return nil
}

// symbol is the name of a function, or its address.
func (r *run) symbol(address uint64) string {
	name, offset := r.r.frame.Symbol(address)
	switch {
	case name == "":
		return fmt.Sprintf("%#x", address)
	case offset != 0:
		return fmt.Sprintf("%s+%d", name, offset)
	}
	return name
}

// text reads a string.
func (r *run) text(c *boundClause) error {
	o, err := c.exprs[0].eval(r)
	if err != nil {
		return err
	}
	count, err := r.number(c.exprs[1])
	if err != nil {
		return err
	}
	if count > 1<<48 {
		return r.broken("it would have %d characters", count)
	}
	size := uint64(1)
	var element *dwarf.Type
	if c.op != opUTF8 {
		if element, err = c.exprs[0].t.Plain(); err != nil {
			return err
		}
		if size = element.Size; element.Base == nil || size == 0 || size > 4 {
			return notBound("%s is no character", element)
		}
	}
	n := min(count, uint64(r.r.limits.Elements))
	var b []byte
	if n > 0 {
		if b, err = r.r.bytes(o.l, n*size); err != nil {
			return err
		}
	}
	var text string
	if c.op == opUTF8 {
		if n < count {
			b = wholeRunes(b)
		}
		text = strconv.Quote(string(b))
	} else {
		codes := make([]rune, n)
		for i := range codes {
			codes[i] = rune(integer(b[uint64(i)*size:uint64(i+1)*size], r.r.ctx.ByteOrder()))
		}
		text = quoted(codes, element.Base)
	}
	if n < count {
		text += "..."
	}
	r.v.shape = scalar
	r.v.setText(text)
	return nil
}
