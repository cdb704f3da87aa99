// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/compared"
	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/internal/filekind"
	"github.com/unwindd/unwindd/engine/internal/flightrecorder"
	"github.com/unwindd/unwindd/engine/internal/label"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/unpack"
)

// This file tells what the paths of a comparison lead to.

// addPath adds what a path leads to, or why it cannot be read.
func (c *Comparer) addPath(ctx context.Context, w *comparer, path string) {
	if ctx.Err() != nil {
		return
	}
	err := guarded(func() error {
		if isText(path) {
			return c.addText(w, path)
		}
		t, err := c.engine.openPath(path)
		if err != nil {
			return err
		}
		defer t.Close()
		c.add(ctx, w, t, path)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		w.part.Add(c.unread(path, err))
	}
}

// openPath opens a target file, or the living process that a number names. A file whose name is a number is
// no process.
func (e *Engine) openPath(path string) (*Target, error) {
	if pid, err := strconv.Atoi(path); err == nil && pid > 0 {
		if _, err := os.Lstat(path); err != nil {
			return e.OpenProcess(pid)
		}
	}
	return e.Open(path)
}

// isText reports whether a file is JSON, a part or a dump of a flight recorder, which are no targets. Of a file
// that cannot be read opening it as a target says why.
func isText(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	head, err := unpack.HeadOf(path, filekind.HeadSize)
	return err == nil && (isJSON(head) || comparison.IsPart(head) || flightrecorder.Accepts(head))
}

// isJSON reports whether a file begins as JSON, and is no target.
func isJSON(head []byte) bool {
	if filekind.IsAppleReport(string(head[:min(len(head), filekind.HeadSize)])) {
		return false
	}
	head = bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf")
	return len(head) > 0 && head[0] == '{'
}

// magicSize is how many first bytes tell a part.
const magicSize = 8

// addText adds the JSON or the part in a file, which may be packed.
func (c *Comparer) addText(w *comparer, path string) error {
	in, err := unpack.Open(path, c.engine.unpacking())
	if err != nil {
		return err
	}
	defer in.Mapping.Close()
	return c.addTextData(w, in.Mapping.Data(), path)
}

// addTextData adds JSON or a part.
func (c *Comparer) addTextData(w *comparer, data []byte, path string) error {
	if comparison.IsPart(data) {
		return c.addPart(w, bytes.NewReader(data), path)
	}
	if isNote, err := c.addNote(w, data, path); isNote {
		return err
	}
	return c.addJSON(w, &jsontext.Reader{Data: data}, path)
}

// addReport adds a report or a part.
func (c *Comparer) addReport(w *comparer, r io.Reader, name string) error {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(magicSize); comparison.IsPart(head) {
		return c.addPart(w, b, name)
	}
	return c.addJSON(w, jsontext.NewStream(b, compared.MaxValue), name)
}

func (c *Comparer) addPart(w *comparer, r io.Reader, name string) error {
	part, err := comparison.Read(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.part.Merge(part)
	return nil
}

// addJSON adds the JSON of a report.
func (c *Comparer) addJSON(w *comparer, r *jsontext.Reader, name string) error {
	p, err := compared.ReadReport(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Path = name
	p.Labels = c.labelsOf(&label.Start{Path: name, Own: p.Labels, Host: p.Host, Command: strings.Fields(p.Command)})
	w.part.Add(w.reader.Target(p))
	return nil
}
