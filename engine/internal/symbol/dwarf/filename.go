// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// fileNames are the files of a unit, computed when needed.
type fileNames struct {
	names []atomic.Pointer[fileName]
}

// fileName has the fields of trace.Symbol that belong to a file.
type fileName struct {
	path    string
	compDir string // the directory that the path was made absolute with; "": none
	source  string // its text, if it is in the line table
	md5     string // of its bytes, if it is in the line table
}

var noFile fileName

// fileName returns a file by its number in rows and DW_AT_call_file.
func (b *body) fileName(number uint64) *fileName {
	t, err := b.lineTable()
	if err != nil || t == nil || number >= uint64(len(t.files)) {
		return &noFile
	}
	cache, _ := b.fileNames.get(func() (*fileNames, error) {
		b.file.addKept(sizeOf[*fileName](len(t.files)))
		return &fileNames{make([]atomic.Pointer[fileName], len(t.files))}, nil
	})
	if name := cache.names[number].Load(); name != nil {
		return name
	}
	name := t.fileName(number, b.compDir)
	if cache.names[number].Swap(name) == nil {
		b.file.addKept(sizeOf[fileName](1) + len(name.path) + len(name.md5))
	}
	return name
}

// fileName returns a file's path as llvm-symbolizer prints it: relative paths below their
// directory and the unit's compilation directory, with "." and ".." unchanged.
func (t *lineTable) fileName(number uint64, compDir string) *fileName {
	if t == nil || number >= uint64(len(t.files)) {
		return &noFile
	}
	f := &t.files[number]
	name := t.pathText(f)
	n := &fileName{path: name, source: t.sourceText(f), md5: copied(f.md5)}
	if name == "" || isAbsolute(name) {
		return n
	}
	dir := ""
	if t.version >= 5 {
		if f.dir < uint64(len(t.dirs)) {
			dir = t.pathText(&t.dirs[f.dir])
		}
		if f.dir == 0 { // the compilation directory
			n.compDir = dir
		}
	} else if f.dir > 0 && f.dir <= uint64(len(t.dirs)) { // directory 0 is the compilation directory
		dir = t.pathText(&t.dirs[f.dir-1])
	}
	if !isAbsolute(dir) && (t.version < 5 || f.dir != 0) {
		dir, n.compDir = join(compDir, dir), compDir
	}
	n.path = join(dir, name)
	return n
}

func (h *lineHeader) pathText(f *lineFile) string {
	text, err := h.lineText(&f.path)
	if err != nil {
		return ""
	}
	return copied(text)
}

// sources are the texts of files in line tables, by their place: tables may share them.
type sources struct {
	mu    sync.Mutex
	texts map[sourceKey]string
}

type sourceKey struct {
	form dw.Form
	off  uint64
}

// sourceText is the text of a file (heterogeneous extension, A.6.2.4.1); "" where it is
// missing.
func (h *lineHeader) sourceText(f *lineFile) string {
	v := &f.source
	var section []byte
	var rest *object.Contents
	switch v.form {
	case dw.FormString:
		return copied(v.b)
	case dw.FormLineStrp:
		section, rest = h.file.lineStr, h.file.rest.lineStr
	case dw.FormStrp:
		section, rest = h.file.str, h.file.rest.str
	}
	if v.n >= uint64(len(section)) || rest.Need(uint64(len(section))) != nil {
		return ""
	}
	c := &h.file.sources
	c.mu.Lock()
	defer c.mu.Unlock()
	key := sourceKey{v.form, v.n}
	text, ok := c.texts[key]
	if !ok {
		if n := bytes.IndexByte(section[v.n:], 0); n >= 0 {
			text = copied(section[v.n : v.n+uint64(n)])
		}
		if c.texts == nil {
			c.texts = make(map[sourceKey]string)
		}
		c.texts[key] = text
	}
	return text
}

// isAbsolute accepts DOS paths, too: the object may be built on any system.
func isAbsolute(name string) bool {
	return path.IsAbs(name) || strings.HasPrefix(name, `\`) ||
		len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
}

func join(dir, name string) string {
	switch {
	case dir == "":
		return name
	case name == "":
		return dir
	case strings.HasSuffix(dir, "/") || strings.HasSuffix(dir, `\`):
		return dir + name
	}
	return dir + "/" + name
}
