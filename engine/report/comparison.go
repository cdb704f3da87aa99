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

// NewComparison returns a Comparison that describes DefaultClasses classes.
func NewComparison(c *trace.Comparison) *Comparison { return &Comparison{Top: DefaultClasses, c: c} }

// ClassSignature is the key of a class of targets: equal for equal stacks, in every comparison.
type ClassSignature struct {
	Signature string            `json:"signature"` // "": the targets could not be read
	Count     int               `json:"count"`     // of targets
	Labels    map[string]string `json:"labels"`    // each with all values in short
	Frames    []string          `json:"frames"`    // innermost first
	Unread    string            `json:"unread,omitempty"`
}

// signature is the signature of a class.
func (c *Comparison) signature(number int) *ClassSignature {
	class := &c.c.Classes[number]
	s := &ClassSignature{Signature: class.Signature, Count: len(class.Targets), Labels: class.Labels, Frames: []string{}, Unread: class.Unread}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	for n := c.signed(class); n >= 0; n = c.c.Functions[n].Parent {
		s.Frames = append(s.Frames, frameName(&c.c.Functions[n].Frame, true, 0))
	}
	return s
}

// signed is the innermost frame of the stack that the signature of a class is made of; -1: it has none.
func (c *Comparison) signed(class *trace.TargetClass) int {
	if class.PartsAt != nil {
		return class.PartsAt.Node
	}
	for i := range class.Threads {
		if th := &class.Threads[i]; th.Role == mainRole {
			return th.Node
		}
	}
	if len(class.Threads) > 0 {
		return class.Threads[0].Node
	}
	return -1
}

// mainRole is the role of the main thread.
const mainRole = "main"

// WriteSignatures writes a line for each class, the smallest first: how many targets it has, its signature,
// which these are, and the frames of the stack that the signature is made of.
func (c *Comparison) WriteSignatures(w io.Writer) error {
	p := NewPrinter(w)
	names := newTargetNames(c.c)
	for i := range c.c.Classes {
		s := c.signature(i)
		p.printf("%5d  ", s.Count)
		if s.Signature != "" {
			p.printf("%s ", s.Signature)
		}
		p.printf("%s:", names.of(c.c.Classes[i].Targets, comparisonWidth))
		for k, f := range s.Frames {
			if k > 0 {
				p.printf(" |")
			}
			p.printf(" %s", f)
		}
		if s.Unread != "" {
			p.printf(" not read: %s", s.Unread)
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
