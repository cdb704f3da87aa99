// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// This file finds libraries where dynamic loaders look for them (ld.so(8), ldconfig(8)).
// Crashpad names the modules of a process by DT_SONAME, without a directory.

const (
	maxLoaderDirs   = 512      // directories that are searched for a library
	maxLoaderFiles  = 64       // files of settings that are read
	maxLoaderConfig = 64 << 10 // bytes of each
)

// loaderConfigs have directories of libraries: glibc's, and musl's of each machine.
var loaderConfigs = []string{"/etc/ld.so.conf", "/etc/ld-musl-*.path"}

// loaderDirectories are the directories that loaders have built in, Android's too.
var loaderDirectories = []string{
	"/lib/*-linux-*", "/usr/lib/*-linux-*", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
	"/usr/local/lib/*-linux-*", "/usr/local/lib64", "/usr/local/lib", "/lib32", "/usr/lib32", "/libx32", "/usr/libx32",
	"/system/lib64", "/system/lib", "/system_ext/lib64", "/vendor/lib64", "/vendor/lib", "/product/lib64",
	"/apex/*/lib64", "/apex/*/lib64/bionic", "/apex/*/lib", "/apex/*/lib/bionic",
}

// A loaderDir is a directory in which a program's loader looks for libraries.
type loaderDir struct {
	path   string
	isHost bool // of this machine, rather than of the target
}

// WithProgram returns the Finder of a target whose main executable has a path in the target and
// was found as o: libraries without a directory are also looked for in the directory of the
// executable and in the directories of its DT_RUNPATH or DT_RPATH. o may be nil.
func (f *Finder) WithProgram(name string, o *Object) Finder {
	own := *f
	own.program = nil
	if path.IsAbs(name) {
		own.addRunPaths(path.Dir(strings.TrimSuffix(name, deleted)), false, o)
	}
	// The executable may lie elsewhere here than in the target, with its libraries.
	return own.WithLibrary(o)
}

// WithLibrary returns the Finder with the directories of the DT_RUNPATH or DT_RPATH of a library
// that was found, and the directory that it lies in.
func (f *Finder) WithLibrary(o *Object) Finder {
	own := *f
	own.program = slices.Clone(f.program)
	if o == nil || o.mapping == nil || o.mapping.isElsewhere || f.IsUnseen {
		return own
	}
	if dir, err := filepath.Abs(filepath.Dir(o.mapping.path)); err == nil {
		origin, isIn := f.inTarget(dir)
		own.addRunPaths(origin, !isIn, o)
	}
	return own
}

// addRunPaths adds the directories of an object's DT_RUNPATH and the one that it lies in.
func (f *Finder) addRunPaths(origin string, isHost bool, o *Object) {
	var list []string
	if o != nil {
		list = o.RunPaths()
	}
	for _, dir := range append(list, origin) {
		isOrigin := dir == origin || strings.Contains(dir, "ORIGIN")
		for _, pattern := range expandOrigin(dir, origin) {
			if d := (loaderDir{pattern, isHost && isOrigin}); !slices.Contains(f.program, d) && len(f.program) < maxLoaderDirs {
				f.program = append(f.program, d)
			}
		}
	}
}

// FindLibrary is Find for a library that only its build ID identifies: it looks where loaders look.
func (f *Finder) FindLibrary(name string, buildID []byte) Found {
	s := search{store: f.Store, formats: f.Formats, want: buildID, mustCheck: true}
	defer s.close()
	if base := baseName(name); IsPlainName(base) && len(buildID) > 0 {
		for _, p := range f.loaderPlaces(base) {
			if o := s.try(p); o != nil {
				return s.found(o, "")
			}
		}
	}
	return Found{Tried: s.tried}
}

// expandOrigin replaces the tokens of ld.so(8) in a directory of DT_RUNPATH. Their values on the
// machine of the target are not known: $LIB and $PLATFORM become patterns.
func expandOrigin(dir, origin string) (list []string) {
	for _, token := range [][2]string{{"${ORIGIN}", origin}, {"$ORIGIN", origin}, {"${PLATFORM}", "*"}, {"$PLATFORM", "*"}, {"${LIB}", "$LIB"}} {
		dir = strings.ReplaceAll(dir, token[0], token[1])
	}
	list = []string{dir}
	if strings.Contains(dir, "$LIB") {
		list = list[:0]
		for _, lib := range []string{"lib/*-linux-*", "lib64", "lib"} {
			list = append(list, strings.ReplaceAll(dir, "$LIB", lib))
		}
	}
	return slices.DeleteFunc(list, func(dir string) bool { return !path.IsAbs(dir) }) // relative to an unknown directory
}

// RunPaths returns the directories of DT_RUNPATH, or else DT_RPATH, with their tokens.
func (o *Object) RunPaths() (list []string) {
	text := o.dynamicString(elf.DT_RUNPATH, maxRunPath)
	if text == "" {
		text = o.dynamicString(elf.DT_RPATH, maxRunPath)
	}
	for dir := range strings.SplitSeq(text, ":") {
		if dir != "" && len(list) < maxLoaderDirs {
			list = append(list, dir)
		}
	}
	return list
}

// loaderPlaces returns the places in which loaders look for the library of a base name: the
// directories of its program, of the machine's settings, and the built-in ones.
func (f *Finder) loaderPlaces(base string) (list []place) {
	for _, dir := range f.program {
		for _, d := range f.glob(dir) {
			p := hostPlace(filepath.Join(d, base))
			if !dir.isHost {
				p = f.rootPlace(path.Join(d, base))
			}
			list = append(list, p)
		}
	}
	for _, dir := range f.loaderDirs() {
		list = append(list, f.rootPlace(path.Join(dir, base)))
	}
	for i := range list {
		list[i].guess = true
	}
	return list
}

// loaderDirs returns the directories of libraries of the target's machine, each once.
func (f *Finder) loaderDirs() []string {
	foldersMu.Lock()
	defer foldersMu.Unlock()
	root := f.root()
	if list, ok := f.loaders[root]; ok {
		return list
	}
	c := loaderConfig{finder: f, seen: map[string]bool{}}
	if len(f.glob(loaderDir{path: "/*"})) > 0 { // a server without files of targets has an empty folder
		c.find()
	}
	if f.loaders == nil {
		f.loaders = map[string][]string{}
	}
	f.loaders[root] = c.dirs
	return c.dirs
}

// A loaderConfig collects directories of libraries.
type loaderConfig struct {
	finder *Finder
	dirs   []string
	seen   map[string]bool // directories, and files that were read
	files  int
}

// find collects the directories of the machine's settings, and the built-in ones.
func (c *loaderConfig) find() {
	for _, pattern := range loaderConfigs {
		c.include(pattern)
	}
	for _, pattern := range loaderDirectories {
		c.add(pattern)
	}
	for _, dir := range slices.Clone(c.dirs) {
		c.add(path.Join(dir, "glibc-hwcaps/*"))
	}
}

func (c *loaderConfig) add(pattern string) {
	for _, dir := range c.finder.glob(loaderDir{path: path.Clean(pattern)}) {
		if !c.seen[dir] && len(c.dirs) < maxLoaderDirs {
			c.seen[dir] = true
			c.dirs = append(c.dirs, dir)
		}
	}
}

// include reads files of settings: directories between white space, colons and commas,
// comments, and the names of other such files.
func (c *loaderConfig) include(pattern string) {
	for _, name := range c.finder.glob(loaderDir{path: pattern}) {
		if c.seen[name] || c.files >= maxLoaderFiles {
			continue
		}
		c.seen[name] = true
		c.files++
		for line := range strings.Lines(c.finder.readSmall(name)) {
			line, _, _ = strings.Cut(line, "#")
			words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n:,", r) })
			switch {
			case len(words) == 0 || words[0] == "hwcap":
			case words[0] == "include":
				for _, other := range words[1:] {
					if !path.IsAbs(other) {
						other = path.Join(path.Dir(name), other)
					}
					c.include(other)
				}
			default:
				for _, dir := range words {
					if dir, _, _ = strings.Cut(dir, "="); path.IsAbs(dir) { // "=libc5" is the kind
						c.add(dir)
					}
				}
			}
		}
	}
}

// readSmall returns the text of a small file of the target; "" where there is none.
func (f *Finder) readSmall(name string) (text string) {
	m, err := f.MapNamed(name)
	if err != nil {
		return ""
	}
	defer m.Close()
	_ = Guard(func() error { // a file that is cut meanwhile has no text
		if len(m.data) <= maxLoaderConfig {
			text = string(m.data)
		}
		return nil
	})
	return text
}

// glob returns the paths that match a pattern, whose components may have stars: of the target,
// beneath Sysroot, or of this machine. A path without a star matches itself, whether it exists or
// not.
func (f *Finder) glob(pattern loaderDir) []string {
	if !strings.Contains(pattern.path, "*") {
		return []string{pattern.path}
	}
	root := f.root()
	if pattern.isHost {
		root = "/"
	}
	fd, err := openRoot(root)
	if err != nil {
		return nil
	}
	defer closeRoot(fd)
	list := []string{""}
	for component := range strings.SplitSeq(strings.Trim(path.Clean(pattern.path), "/"), "/") {
		var next []string
		for _, dir := range list {
			if !strings.Contains(component, "*") {
				next = append(next, dir+"/"+component)
				continue
			}
			for _, name := range listIn(fd, dir+"/") {
				if is, err := path.Match(component, name); is && err == nil && len(next) < maxLoaderDirs {
					next = append(next, dir+"/"+name)
				}
			}
		}
		list = next
	}
	return list
}
