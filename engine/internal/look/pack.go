// SPDX-License-Identifier: Apache-2.0

package look

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
)

// Columns writes numbers as unsigned LEB128, and JSON behind its length. The page's script reads them with data.js.
type Columns struct {
	*bufio.Writer
	number [binary.MaxVarintLen64]byte
}

// NewColumns returns Columns that write to w. They are to be flushed.
func NewColumns(w io.Writer) *Columns { return &Columns{Writer: bufio.NewWriterSize(w, 1<<16)} }

// Uint writes a number.
func (c *Columns) Uint(n uint64) { _, _ = c.Write(c.number[:binary.PutUvarint(c.number[:], n)]) }

// Int writes a number that may be negative, zigzag.
func (c *Columns) Int(n int64) { c.Uint(uint64(n<<1) ^ uint64(n>>63)) }

// JSON writes a value as JSON behind its length in bytes.
func (c *Columns) JSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Uint(uint64(len(text)))
	_, err = c.Write(text)
	return err
}

// Packer writes the data of a page: Columns, deflated (RFC 1951) and in base64.
type Packer struct {
	*Columns
	deflated, encoded io.Closer
}

// NewPacker returns a Packer that writes to w. Errors of writing are errors of Close.
func NewPacker(w io.Writer) *Packer {
	encoded := base64.NewEncoder(base64.StdEncoding, w)
	deflated, _ := flate.NewWriter(encoded, flate.DefaultCompression) // the level is a valid one
	return &Packer{Columns: NewColumns(deflated), deflated: deflated, encoded: encoded}
}

// Close writes the rest that is in memory.
func (p *Packer) Close() error { return cmp.Or(p.Flush(), p.deflated.Close(), p.encoded.Close()) }

// Preorder numbers the nodes of a tree from 1 on so that the nodes below a node follow it. Parents
// are the indices of the nodes above, -1 of an outermost one, and precede their children.
func Preorder(parents []int32) []int32 {
	sizes := make([]int32, len(parents)) // each with the nodes below it
	for i := len(parents) - 1; i >= 0; i-- {
		sizes[i]++
		if parent := parents[i]; parent >= 0 {
			sizes[parent] += sizes[i]
		}
	}
	numbers, next, outer := make([]int32, len(parents)), make([]int32, len(parents)), int32(1)
	for i, parent := range parents {
		free := &outer
		if parent >= 0 {
			free = &next[parent]
		}
		numbers[i] = *free
		next[i] = *free + 1
		*free += sizes[i]
	}
	return numbers
}

// Levels writes, for each node in preorder, how many levels above the node before is its parent,
// and returns the nodes in that order.
func (c *Columns) Levels(parents, numbers []int32) []int32 {
	list, levels := make([]int32, len(numbers)), make([]int32, len(numbers))
	for i, n := range numbers {
		list[n-1] = int32(i)
	}
	last := int32(0)
	for _, i := range list {
		level := int32(1)
		if parent := parents[i]; parent >= 0 {
			level = levels[parent] + 1
		}
		levels[i] = level
		c.Uint(uint64(last + 1 - level))
		last = level
	}
	return list
}

// separator stands between the parts of packed files.
const separator = "\x00"

// Unpack returns the parts of the files of a page, which are deflated to a third of their size:
// looktest.Packed writes them.
func Unpack(packed []byte) ([]string, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	return strings.Split(string(text), separator), err
}

// Pack packs the parts of the files of a page.
func Pack(parts []string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is a valid one, and memory takes all
	_, _ = io.WriteString(w, strings.Join(parts, separator))
	_ = w.Close()
	return b.Bytes()
}
