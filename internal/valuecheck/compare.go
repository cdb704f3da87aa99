package valuecheck

import (
	"fmt"
	"strings"
)

// Outcome says how a value of ours compares with a debugger's.
type Outcome string

// The outcomes. Those above Equal are differences; a variable has the first of
// this list that a part of it has.
const (
	Wrong     Outcome = "wrong"        // both know it, and it differs
	Miss      Outcome = "miss"         // the peer alone knows it
	NoFrame   Outcome = "no frame"     // it is in a frame that we do not have
	Explained Outcome = "explained"    // it differs for a reason that is known; see Pair.Class
	OnlyWe    Outcome = "only we"      // we alone know it
	Equal     Outcome = "equal"        // both know it, and it is the same
	Neither   Outcome = "neither"      // neither knows it
	Cut       Outcome = "cut"          // the limit of one of the two left it out
	OnRequest Outcome = "on request"   // it is in no frame, and we print it when it is named
	Extra     Outcome = "only we list" // a variable or part that the peer does not list
)

// Outcomes are the outcomes, the worst first.
var Outcomes = []Outcome{Wrong, Miss, NoFrame, Explained, OnlyWe, Extra, Equal, Neither, Cut, OnRequest}

// Pair is a value that is not equal.
type Pair struct {
	Outcome      Outcome
	Class        string // the reason, where it is known
	Where        string // thread, frame and function
	Name         string // of the variable and its part
	Type         string
	Ours, Theirs string
	Place        string // where the variable is
}

func (p *Pair) String() string {
	return fmt.Sprintf("%s%s: %s: %s (%s): ours %s, theirs %s; %s", p.Outcome, withComma(p.Class), p.Where, p.Name, p.Type, p.Ours, p.Theirs, p.Place)
}

func withComma(class string) string {
	if class == "" {
		return ""
	}
	return ", " + class
}

// Result is how the values of a core compare.
type Result struct {
	Frames    int
	Variables map[Outcome]int
	Values    map[Outcome]int // parts without parts
	Classes   map[string]int  // of the values that are explained
	Pairs     []*Pair         // those that are not equal
	Texts     map[string]int  // equal values whose text differs, by kind of type and an example
	Types     map[string]int  // names of types that differ
	Summaries map[string]int  // summaries of pretty forms that differ
}

// NewResult is a result of nothing.
func NewResult() *Result {
	return &Result{Variables: map[Outcome]int{}, Values: map[Outcome]int{}, Classes: map[string]int{},
		Texts: map[string]int{}, Types: map[string]int{}, Summaries: map[string]int{}}
}

// Known is how many values the peer knows and ours can be held against: of
// these, 98 of 100 are to be equal.
func (r *Result) Known() int { return r.Values[Equal] + r.Values[Wrong] + r.Values[Miss] }

// Add adds the counts and pairs of another core.
func (r *Result) Add(other *Result) {
	r.Frames += other.Frames
	r.Pairs = append(r.Pairs, other.Pairs...)
	for _, m := range []struct{ to, from map[Outcome]int }{{r.Variables, other.Variables}, {r.Values, other.Values}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
	for _, m := range []struct{ to, from map[string]int }{{r.Classes, other.Classes}, {r.Texts, other.Texts}, {r.Types, other.Types}, {r.Summaries, other.Summaries}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
}

// comparison is one core at work.
type comparison struct {
	*Result
	where        string
	variable     *Node // the one that is being compared
	location     string
	inner        bool // the frame is in a call
	isLengthLost bool // of an array of the frame
	isLoose      bool // the cores are of two programs that hold the same; see CompareContents
	isGo         bool // the peer is delve
	worst        int  // index in Outcomes of what a part of the variable is
}

// Compare compares the values of a core.
func Compare(ours *Document, theirs *Peer) *Result {
	c := &comparison{Result: NewResult(), isGo: theirs.IsDelve}
	threads := map[string]*Thread{}
	for i := range ours.Threads {
		threads[ours.Threads[i].ID] = &ours.Threads[i]
	}
	for i := range theirs.Threads {
		p := &theirs.Threads[i]
		t := threads[p.ID]
		if t == nil {
			t = &Thread{ID: p.ID}
		}
		c.thread(t, p)
	}
	c.where, c.inner = "globals", false
	c.level(ours.Globals, theirs.Globals)
	return c.Result
}

// CompareContents compares variables of two programs that were made of the same source
// with other libraries: by their names and lines, and of pointers only whether they
// are null.
func CompareContents(ours *Document, theirs *Peer) *Result {
	c := &comparison{Result: NewResult(), where: "by name", isLoose: true}
	type key struct {
		name string
		line int
	}
	mine := map[key]*Value{}
	for _, t := range ours.Threads {
		for _, f := range t.Frames {
			for _, v := range f.Locals {
				mine[key{v.Name, v.Line}] = v
			}
		}
	}
	for _, t := range theirs.Threads {
		for _, f := range t.Frames {
			c.Frames++
			for _, n := range f.Variables {
				if v := mine[key{n.Name, n.Line}]; v != nil && n.Line > 0 && f.Own {
					c.begin(n, v)
					c.node(n.Name, n, v)
					c.end()
				}
			}
		}
	}
	return c.Result
}

func (c *comparison) thread(t *Thread, p *PeerThread) {
	match := align(t.Frames, p.Frames)
	physical := 0
	for i := range p.Frames {
		f := &p.Frames[i]
		c.inner = physical > 0
		if f.Kind != "inline" {
			physical++
		}
		if !f.Own {
			continue
		}
		c.Frames++
		c.where = fmt.Sprintf("thread %s, frame %d at %s, %s", p.ID, i, f.PC, f.Function)
		if match[i] == nil {
			c.without(f)
			continue
		}
		c.level(match[i].Locals, f.Variables)
	}
}

// without counts the variables of a frame that we do not have.
func (c *comparison) without(f *PeerFrame) {
	for _, n := range f.Variables {
		c.begin(n, nil)
		c.each(n.Name, n, func(path string, leaf *Node) {
			if leaf.Optimized || leaf.Error != "" {
				c.count(Neither, path, leaf, nil)
			} else {
				c.count(NoFrame, path, leaf, nil)
			}
		})
		c.end()
	}
}

// variableKey tells variables of a frame apart; ordinal counts those of one name
// and line from the innermost block on.
type variableKey struct {
	name    string
	line    int
	ordinal int
}

func keyed[T any](all []T, of func(T) (string, int)) (keys []variableKey, by map[variableKey]T) {
	by = map[variableKey]T{}
	for _, x := range all {
		name, line := of(x)
		key := variableKey{name, line, 0}
		for {
			if _, seen := by[key]; !seen {
				break
			}
			key.ordinal++
		}
		by[key] = x
		keys = append(keys, key)
	}
	return keys, by
}

// level compares the variables of a frame.
func (c *comparison) level(ours []*Value, theirs []*Node) {
	ourKeys, mine := keyed(ours, func(v *Value) (string, int) { return v.Name, v.Line })
	c.isLengthLost = lostLengths(theirs, c.inner)
	keys, by := keyed(theirs, func(n *Node) (string, int) { return n.Name, n.Line })
	for _, key := range keys {
		n, v := by[key], mine[key]
		c.begin(n, v)
		switch {
		case v == nil && n.Static:
			c.each(n.Name, n, func(path string, leaf *Node) { c.count(OnRequest, path, leaf, nil) })
		default:
			c.node(n.Name, n, v)
		}
		c.end()
	}
	for _, key := range ourKeys {
		if _, ok := by[key]; !ok {
			v := mine[key]
			if c.isGo {
				continue // delve leaves out what is declared at a later line
			}
			c.begin(&Node{}, v)
			c.count(Extra, v.Name, &Node{Name: v.Name, Type: v.Type}, v)
			c.end()
		}
	}
}

func (c *comparison) begin(n *Node, v *Value) {
	c.variable, c.location, c.worst = n, n.Place, len(Outcomes)
	if v != nil && v.Location != "" {
		c.location = v.Location + "; " + n.Place
	}
}

func (c *comparison) end() {
	if c.worst < len(Outcomes) {
		c.Variables[Outcomes[c.worst]]++
	}
}

// count counts a value, and keeps it if it is not equal.
func (c *comparison) count(o Outcome, path string, n *Node, v *Value) {
	class := ""
	if o == Miss || o == Wrong || o == OnlyWe {
		if class = c.explain(o, n, v); class != "" {
			o = Explained
			c.Classes[class]++
		}
	}
	c.Values[o]++
	for i, x := range Outcomes[:c.worst] {
		if x == o {
			c.worst = i
			break
		}
	}
	if o == Equal || o == Neither || o == Cut || o == OnRequest {
		return
	}
	c.Pairs = append(c.Pairs, &Pair{Outcome: o, Class: class, Where: c.where, Name: path, Type: n.Type,
		Ours: v.shown(), Theirs: n.shown(), Place: strings.Join(strings.Fields(c.location), " ")})
}

// each goes over the parts of a value that have no parts.
func (c *comparison) each(path string, n *Node, f func(path string, leaf *Node)) {
	if n.Cut && len(n.Children) == 0 {
		return
	}
	if len(n.Children) == 0 || n.Synthetic || strings.HasSuffix(n.Code, "ref") {
		if n.Code == "struct" || n.Code == "union" || n.Code == "array" {
			if n.Error == "" {
				return // it is empty
			}
		}
		f(path, n)
		return
	}
	for _, child := range n.Children {
		if child.isDiscriminant() {
			continue
		}
		c.each(join(path, child.Name), child, f)
	}
}

func join(path, name string) string {
	if strings.HasPrefix(name, "[") {
		return path + name
	}
	return path + "." + name
}

// node compares a value.
func (c *comparison) node(path string, n *Node, v *Value) {
	switch {
	case c.isLoose && (v != nil && v.Status == "optimized-out" || !n.Pretty && strings.HasPrefix(n.Type, "std::") && n.Code == "struct" && !strings.HasPrefix(n.Type, "std::array")):
		c.count(Neither, path, n, v) // it is of this program alone
	case v == nil || v.Status == "optimized-out" || v.Status == "error" || v.Status == "partial" && len(v.Children) == 0:
		c.each(path, n, func(path string, leaf *Node) {
			if leaf.Optimized || leaf.Error != "" || leaf.Text == "()" {
				c.count(Neither, path, leaf, v)
			} else {
				c.count(Miss, path, leaf, v)
			}
		})
	case n.Optimized || n.Error != "":
		c.count(OnlyWe, path, n, v)
	case n.Cut && len(n.Children) == 0:
		c.count(Cut, path, n, v)
	case n.Code == "escaped":
		if len(v.Children) == 1 {
			c.node(path, n.Children[0], v.Children[0])
		} else {
			c.node(path, n.Children[0], nil)
		}
	case n.Pretty:
		c.pretty(path, n, v)
	case n.Code == "func":
		c.function(path, n, v)
	case n.Synthetic:
		c.synthetic(path, n, v)
	case strings.HasSuffix(n.Code, "ref"):
		c.reference(path, n, v)
	case n.Code == "interface":
		c.dynamic(path, n, v)
	case n.Code == "chan":
		c.channel(path, n, v)
	case n.Code == "struct" || n.Code == "union":
		c.members(path, n, v)
	case n.Code == "array":
		c.elements(path, n, v)
	case n.Code == "text" && v.Value == "" && len(v.Children) > 0:
		c.characters(path, n, v)
	default:
		c.leaf(path, n, v)
	}
	if v != nil && n == c.variable && !c.isLoose && n.Address != "" && v.Address != "" && n.Address != v.Address && !strings.HasSuffix(n.Code, "ref") {
		c.count(Wrong, path+" address", &Node{Type: n.Type, Text: n.Address}, &Value{Value: v.Address})
	}
	if v != nil && n.Type != "" && v.Type != n.Type && !strings.HasSuffix(path, "&") {
		c.Types[fmt.Sprintf("%q, theirs %q", v.Type, n.Type)]++
	}
}

func (c *comparison) leaf(path string, n *Node, v *Value) {
	if v.Value == "" && v.More > 0 {
		c.count(Cut, path, n, v)
		return
	}
	if c.isLoose && n.Code == "ptr" {
		if isNull := strings.Trim(n.Bytes, "0") == ""; isNull == (v.Value == "0x0") {
			c.count(Equal, path, n, v)
		} else {
			c.count(Wrong, path, n, v)
		}
		return
	}
	if !judgeLeaf(n, v.Value) {
		c.count(Wrong, path, n, v)
		return
	}
	c.count(Equal, path, n, v)
	if v.Value != n.Text {
		c.Texts[n.Code]++
	}
}

// members compares the members of a class, and its bases.
func (c *comparison) members(path string, n *Node, v *Value) {
	if len(n.Children) == 1 && n.Children[0].Name == "_M_elems" && n.Children[0].Code == "array" && isElement(v) {
		c.elements(path, n.Children[0], v) // std::array, of which gdb has no form
		return
	}
	if len(n.Children) == 1 && !hasPart(v, n.Children[0].Name) && n.Children[0].Kind != "base" {
		c.node(join(path, n.Children[0].Name), n.Children[0], v) // our form is what it wraps
		return
	}
	if len(n.Children) > 0 && isForm(n, v) {
		c.count(OnlyWe, path, n, v)
		return
	}
	ours, bases := map[string][]*Value{}, []*Value{}
	for _, child := range v.Children {
		if child.Kind == "base" {
			bases = append(bases, child)
		} else {
			ours[child.Name] = append(ours[child.Name], child)
		}
	}
	for _, child := range n.Children {
		var mine *Value
		if child.Kind == "base" {
			if len(bases) > 0 {
				mine, bases = bases[0], bases[1:]
			}
		} else if same := ours[child.Name]; len(same) > 0 {
			mine, ours[child.Name] = same[0], same[1:]
		}
		switch {
		case mine == nil && child.isDiscriminant():
			continue
		case mine == nil && len(n.Children) > 2 && n.Children[0].isDiscriminant() && v.variant() != "":
			c.Classes[gdbVariants]++
			c.count(Explained, join(path, child.Name), child, v)
			continue
		case mine == nil && (v.More > 0 || v.Value == "..."):
			c.each(join(path, child.Name), child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
			continue
		}
		c.node(join(path, child.Name), child, mine)
	}
	for _, rest := range ours {
		for _, child := range rest {
			c.count(Extra, join(path, child.Name), &Node{Type: child.Type}, child)
		}
	}
}

// isElement says whether the parts of a value are elements.
func isElement(v *Value) bool { return len(v.Children) > 0 && v.Children[0].Name == "[0]" }

// elements compares the elements of an array.
func (c *comparison) elements(path string, n *Node, v *Value) {
	if n.Elements == 0 && len(v.Children) == 0 && v.More == 0 {
		c.count(Equal, path, n, v)
		return
	}
	if v.Value != "" && len(v.Children) == 0 { // a text, of which the peer does not have all
		c.count(OnlyWe, path, n, v)
		return
	}
	ours := map[string]*Value{}
	for _, child := range v.Children {
		ours[child.Name] = child
	}
	if n.Elements != len(v.Children)+v.More {
		c.count(Wrong, path, &Node{Type: n.Type, Text: fmt.Sprintf("%d elements", n.Elements)}, &Value{Value: fmt.Sprintf("%d elements", len(v.Children)+v.More)})
	}
	for _, child := range n.Children {
		mine := ours[child.Name]
		if mine == nil && v.More > 0 {
			c.each(path+child.Name, child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
			continue
		}
		c.node(path+child.Name, child, mine)
	}
}

// characters compares the elements of an array that the peer prints as a text.
func (c *comparison) characters(path string, n *Node, v *Value) {
	width := max(n.Width, 1) * 2
	if n.Elements != len(v.Children)+v.More {
		c.count(Wrong, path, n, &Value{Value: fmt.Sprintf("%d elements", len(v.Children)+v.More)})
	}
	for i, child := range v.Children {
		if (i+1)*width > len(n.Bytes) {
			return
		}
		c.node(path+child.Name, &Node{Code: "int", Signed: strings.HasPrefix(child.Value, "-"), Bytes: n.Bytes[i*width : (i+1)*width], Type: child.Type}, child)
	}
}

// synthetic compares what a pointer points to that was optimized away.
func (c *comparison) synthetic(path string, n *Node, v *Value) {
	if len(n.Children) == 0 || n.Children[0].Optimized || n.Children[0].Error != "" {
		c.count(Equal, path, n, v)
		return
	}
	target := n.Children[0]
	if len(v.Children) == 1 && (target.Code != "struct" || v.Children[0].Name == "*" || v.Children[0].Name == "") {
		c.node(path+"*", target, v.Children[0])
		return
	}
	c.node(path+"*", target, v)
}

// reference compares what a reference leads to. Its address is compared where we
// print that alone.
func (c *comparison) reference(path string, n *Node, v *Value) {
	if word, ok := strings.CutPrefix(v.Value, "@"); ok && len(v.Children) == 0 {
		if n.Bytes != "" && !judgeLeaf(&Node{Code: "ptr", Bytes: n.Bytes}, strings.TrimSuffix(word, ":")) {
			c.count(Wrong, path, &Node{Type: n.Type, Text: "address " + n.Bytes}, v)
			return
		}
		c.count(Equal, path, n, v)
		return
	}
	if len(n.Children) == 0 {
		c.count(Cut, path, n, v)
		return
	}
	if n.Bytes != "" && v.Address != "" && !c.isLoose && !judgeLeaf(&Node{Code: "ptr", Bytes: n.Bytes}, v.Address) {
		c.count(Wrong, path, &Node{Type: n.Type, Text: "address " + n.Bytes}, &Value{Value: v.Address})
		return
	}
	target := n.Children[0]
	if len(v.Children) == 1 && v.Children[0].Kind == "pointee" {
		v = v.Children[0]
	}
	c.node(path+"&", target, v)
}

// function compares a value of a Go function: delve says its name, or nothing of nil.
func (c *comparison) function(path string, n *Node, v *Value) {
	if isNil := n.Text == ""; isNil && (v.Value == "nil" || v.Value == "0x0") || !isNil && strings.Contains(v.Value, n.Text) {
		c.count(Equal, path, n, v)
	} else {
		c.count(Wrong, path, n, v)
	}
}

// dynamic compares what an interface of Go holds.
func (c *comparison) dynamic(path string, n *Node, v *Value) {
	isNil := len(n.Children) == 0 || n.Children[0].Code == "struct" && n.Children[0].Type == "void" || n.Children[0].Code == "interface" && len(n.Children[0].Children) == 0
	switch {
	case isNil && len(v.Children) == 0 && strings.Contains(v.Value, "nil"):
		c.count(Equal, path, n, v)
	case !isNil && len(v.Children) == 1:
		c.node(path+".data", n.Children[0], v.Children[0])
	case !isNil && len(v.Children) == 0 && v.Deep:
		c.count(Cut, path, n, v)
	default:
		c.count(Wrong, path, n, v)
	}
}

// channel compares a channel of Go by how many elements it has, of how many.
func (c *comparison) channel(path string, n *Node, v *Value) {
	field := map[string]string{}
	for _, child := range n.Children {
		field[child.Name] = child.Text
	}
	want := field["qcount"] + "/" + field["dataqsiz"]
	if len(n.Children) == 0 {
		want = "nil"
	}
	if strings.HasSuffix(v.Value, want) {
		c.count(Equal, path, n, v)
	} else {
		c.count(Wrong, path, &Node{Type: n.Type, Text: want}, v)
	}
}
