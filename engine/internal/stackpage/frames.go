// SPDX-License-Identifier: Apache-2.0

package stackpage

import "strings"

// This file writes frames, of which a page may have a million: a template takes ten times as long as
// the text of a frame. What few frames have is written by templates.

// escaper keeps text from being taken for HTML, as html/template does.
var escaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// put writes HTML. Close returns the first error.
func (p *Writer) put(parts ...string) {
	for _, s := range parts {
		_, _ = p.b.WriteString(s)
	}
}

// text writes text, escaped.
func (p *Writer) text(s string) {
	if strings.ContainsAny(s, "\x00\"&'+<>") {
		_, _ = escaper.WriteString(p.b, s)
		return
	}
	p.put(s)
}

// line writes the pieces of a line and its end.
func (p *Writer) line(l Line) {
	p.pieces(l)
	p.put("\n")
}

func (p *Writer) pieces(l Line) {
	for i := range l {
		piece := &l[i]
		if piece.Kind == Plain && piece.Full == "" {
			p.text(piece.Text)
			continue
		}
		p.put("<i class=", string(piece.Kind))
		if piece.Full != "" {
			p.put(` title="`)
			p.text(piece.Full)
			p.put(`"`)
		}
		p.put(">")
		p.text(piece.Text)
		p.put("</i>")
	}
}

// lines writes lines, each as an element of a class.
func (p *Writer) lines(class string, list []Line) {
	for _, l := range list {
		p.put(`<div class="`, class, `">`)
		p.line(l)
		p.put("</div>")
	}
}

// part writes the frames of a thread.
func (p *Writer) part(part *Part) {
	p.lines("t", part.Launch)
	part.Frames(p.frame)
	p.lines("t e", part.End)
}

func (p *Writer) frame(f *Frame) {
	switch {
	case len(f.Folded) > 0:
		p.put(`<details class="folded"><summary class="t">`)
		p.line(f.Note)
		p.put(`</summary><div class="x">`)
		for i := range f.Folded {
			p.frame(&f.Folded[i])
		}
		p.put("</div></details>")
	case len(f.Note) > 0:
		p.lines("t", []Line{f.Note})
	}
	if f.HasInlined() {
		p.put(`<div class="fr">`)
	}
	for k := range f.Calls {
		p.call(&f.Calls[k])
	}
	if f.HasInlined() {
		p.put("</div>")
	}
}

// call writes a function in a frame.
func (p *Writer) call(c *Call) {
	p.put(`<div class="r`)
	for _, class := range []struct {
		is   bool
		name string
	}{{c.IsOwn, " own"}, {c.IsInlined, " in"}, {c.IsGuess, " guess"}} {
		if class.is {
			p.put(class.name)
		}
	}
	p.put(`"><span>`)
	p.pieces(c.Line)
	p.put("</span>")
	if c.Module != "" {
		p.put("<b class=m>")
		p.text(c.Module)
		p.put("</b>")
	}
	if c.FoundBy != "" {
		p.put("<b class=by>")
		p.text(c.FoundBy)
		p.put("</b>")
	}
	p.put("\n</div>")
	if c.Source != nil || c.Code != nil || c.Lanes != nil || c.Registers != nil || c.Locals != nil {
		p.execute("beside", c)
	}
}
