// SPDX-License-Identifier: Apache-2.0

package report

import (
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

// WriteText writes the classes for people, the smallest first, each with the frame at which it parts from
// the rest, and the tree of stacks, folded to where classes part.
func (c *Comparison) WriteText(w io.Writer, o TextOptions) error { panic("contract") }

// WriteJSON writes the comparison as docs/compare.schema.json describes it.
func (c *Comparison) WriteJSON(w io.Writer) error { panic("contract") }

// WriteMarkdown writes the comparison as a section in GitHub's flavour of Markdown of at most the given
// number of bytes, or MaxMarkdown where that is 0.
func (c *Comparison) WriteMarkdown(w io.Writer, o TextOptions, most int) error { panic("contract") }

// WriteDOT writes the tree of stacks by functions as a graph in the language of Graphviz.
func (c *Comparison) WriteDOT(w io.Writer) error { panic("contract") }

// WriteFolded writes a line for each stack by functions: the role of the thread, the functions from
// the outermost on, and the number of threads.
func (c *Comparison) WriteFolded(w io.Writer) error { panic("contract") }

// WritePprof writes the stacks in the format of profile.proto, gzipped: a sample for each stack of a class and a role,
// with the numbers of threads and of targets, and the labels class and role.
func (c *Comparison) WritePprof(w io.Writer) error { panic("contract") }

// WriteSignatures writes a line for each class, the smallest first: its signature, how many targets it has, which
// these are, and the frames that the signature is made of.
func (c *Comparison) WriteSignatures(w io.Writer) error { panic("contract") }

// WriteSignaturesJSON writes the same, as a JSON object on each line.
func (c *Comparison) WriteSignaturesJSON(w io.Writer) error { panic("contract") }
