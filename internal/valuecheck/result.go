// SPDX-License-Identifier: Apache-2.0

package valuecheck

import "fmt"

// Outcome is the result of comparing a value of ours with a debugger's.
type Outcome string

// The outcomes. The ones above Equal are differences; a variable has the first
// outcome of this list that a part of it has.
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

// Result has the outcomes of the values of a core.
type Result struct {
	Frames    int
	Variables map[Outcome]int
	Values    map[Outcome]int // parts without parts
	Classes   map[string]int  // of the values that are explained
	Pairs     []*Pair         // the values that are not equal
	Texts     map[string]int  // equal values whose text differs, by kind of type and an example
	Types     map[string]int  // names of types that differ
	Summaries map[string]int  // summaries of pretty-printed values that differ
}

// NewResult returns an empty result.
func NewResult() *Result {
	return &Result{Variables: map[Outcome]int{}, Values: map[Outcome]int{}, Classes: map[string]int{},
		Texts: map[string]int{}, Types: map[string]int{}, Summaries: map[string]int{}}
}

// Known returns how many values the peer knows and ours can be compared with:
// 98 of 100 of these must be equal.
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
