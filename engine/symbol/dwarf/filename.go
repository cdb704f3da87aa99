package dwarf

import (
	"path"
	"strings"
	"sync/atomic"
)

// fileNames are the paths of a unit's files, made as they are asked for.
type fileNames struct {
	names []atomic.Pointer[string]
}

// fileName returns the path of a file by its number, as rows and DW_AT_call_file
// have it; "" where there is none.
func (b *body) fileName(number uint64) string {
	t, err := b.lineTable()
	if err != nil || t == nil || number >= uint64(len(t.files)) {
		return ""
	}
	cache, _ := b.fileNames.get(func() (*fileNames, error) {
		return &fileNames{make([]atomic.Pointer[string], len(t.files))}, nil
	})
	if name := cache.names[number].Load(); name != nil {
		return *name
	}
	name := t.fileName(number, b.compDir)
	cache.names[number].Store(&name)
	return name
}

// fileName returns a file's path as llvm-symbolizer prints it: relative ones
// below the directory they are relative to and the unit's compilation
// directory, "." and ".." left as they are.
func (t *lineTable) fileName(number uint64, compDir string) string {
	if t == nil || number >= uint64(len(t.files)) {
		return ""
	}
	f := &t.files[number]
	name := t.pathText(f)
	if name == "" || isAbsolute(name) {
		return name
	}
	dir := ""
	if t.version >= 5 {
		if f.dir < uint64(len(t.dirs)) {
			dir = t.pathText(&t.dirs[f.dir])
		}
	} else if f.dir > 0 && f.dir <= uint64(len(t.dirs)) { // directory 0 is the compilation directory
		dir = t.pathText(&t.dirs[f.dir-1])
	}
	if !isAbsolute(dir) && (t.version < 5 || f.dir != 0) {
		dir = join(compDir, dir)
	}
	return join(dir, name)
}

func (h *lineHeader) pathText(f *lineFile) string {
	text, err := h.lineText(&f.path)
	if err != nil {
		return ""
	}
	return copied(text)
}

// isAbsolute takes DOS paths for what they are too: where the object was built
// is not known.
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
