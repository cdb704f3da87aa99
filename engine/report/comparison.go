// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

// DefaultClasses is how many classes text and Markdown describe, unless Comparison.Top says another number.
const DefaultClasses = 10

// Comparison writes a comparison of many targets.
type Comparison struct {
	// Top is how many classes WriteText and WriteMarkdown describe, the smallest first; 0: all.
	Top int
	c   *trace.Comparison
}

// mainRole is the role of the main thread.
const mainRole = "main"

// NewComparison returns a Comparison that describes DefaultClasses classes.
func NewComparison(c *trace.Comparison) *Comparison { return &Comparison{Top: DefaultClasses, c: c} }

// ClassSignature is the key of a class of targets: equal for equal stacks, in every comparison.
type ClassSignature struct {
	Signature string            `json:"signature"`
	Count     int               `json:"count"`  // of targets
	Labels    map[string]string `json:"labels"` // each with all values in short
	// Of is what the signature is made of: "stack", the one at which the class parts from the rest, "missing", one
	// that it lacks, "all", all its stacks, or "unread", the reason why its targets could not be read.
	Of string `json:"of"`
	// Role is the role of the thread that has the stack, and Frames the functions of that, innermost first.
	Role   string   `json:"role,omitempty"`
	Frames []string `json:"frames"`
	Unread string   `json:"unread,omitempty"`
}

// signature is the signature of a class.
func (c *Comparison) signature(number int) *ClassSignature {
	class := &c.c.Classes[number]
	s := &ClassSignature{Signature: class.Signature, Count: len(class.Targets), Labels: presentLabels(class.Labels), Of: "all", Frames: []string{}, Unread: class.Unread}
	switch p := class.PartsAt; {
	case class.Unread != "":
		s.Of = "unread"
	case p != nil:
		if s.Of = "stack"; p.IsMissing {
			s.Of = "missing"
		}
		s.Role = p.Role
		for n := p.Node; n >= 0; n = c.c.Functions[n].Parent {
			s.Frames = append(s.Frames, frameName(&c.c.Functions[n].Frame, true, 0))
		}
	}
	return s
}

// WriteSignatures writes a line for each class, the smallest first: how many targets it has, its signature,
// which these are, and the frames of the stack that the signature is made of.
func (c *Comparison) WriteSignatures(w io.Writer) error {
	p := NewPrinter(w)
	names := newTargetNames(c.c)
	for i := range c.c.Classes {
		s := c.signature(i)
		p.printf("%5d  %s  %s: ", s.Count, s.Signature, names.of(c.c.Classes[i].Targets, comparisonWidth))
		switch s.Of {
		case "unread":
			p.printf("not read: %s", s.Unread)
		case "missing":
			p.printf("without %s:", roleWords(s.Role))
		case "all":
			p.printf("%s", plural(len(c.c.Classes[i].Threads), "stack", "stacks"))
		default:
			p.printf("%s:", roleWords(s.Role))
		}
		for k, f := range s.Frames {
			if k > 0 {
				p.printf(" |")
			}
			p.printf(" %s", f)
		}
		p.printf("\n")
		if err := p.check(); err != nil {
			return err
		}
	}
	return p.Flush()
}

// WriteSignaturesJSON writes a ClassSignature of each class, the smallest first, on a line each.
func (c *Comparison) WriteSignaturesJSON(w io.Writer) error {
	b := newOutput(w)
	for i := range c.c.Classes {
		text, err := marshal(c.signature(i))
		if err != nil {
			return fmt.Errorf("class %d: %w", i+1, err)
		}
		b.put(text, "\n")
		if err := b.check(); err != nil {
			return err
		}
	}
	return b.Flush()
}
