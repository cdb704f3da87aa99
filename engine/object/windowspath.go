// SPDX-License-Identifier: Apache-2.0

package object

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// This file finds files by paths of Windows, which have drives and backslashes, and whose
// letters have no case.

// cutWindows returns the path below the drive, with slashes, of a path of Windows:
// "/windows/system32/ntdll.dll" of "C:\windows\system32\ntdll.dll". It is false for paths of other
// systems.
func cutWindows(name string) (slashed string, ok bool) {
	rest := name
	for _, prefix := range []string{`\\?\`, `\??\`, `\\.\`} { // of the object manager's names
		rest = strings.TrimPrefix(rest, prefix)
	}
	isDrive := len(rest) >= 2 && rest[1] == ':' && (rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z')
	if isDrive {
		rest = rest[2:]
	}
	if !isDrive && (strings.Contains(rest, "/") || !strings.Contains(rest, `\`)) {
		return "", false
	}
	return path.Clean("/" + strings.ReplaceAll(rest, `\`, "/")), true
}

// LastPart returns the last part of a path of any system, behind the last slash or backslash.
func LastPart(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// baseName returns the last part of a path of a target, of Windows or not.
func baseName(name string) string {
	if slashed, ok := cutWindows(name); ok {
		name = slashed
	}
	return path.Base(name)
}

// driveOf returns the drive of a path of Windows in lower case, as "c:"; "" where it has none.
func driveOf(name string) string {
	i := strings.IndexByte(name, ':')
	if i < 1 || name[i-1]|0x20 < 'a' || name[i-1]|0x20 > 'z' {
		return ""
	}
	return strings.ToLower(name[i-1 : i+1])
}

// windowsDirs yields the directories beneath Sysroot that a path of Windows may be relative to, by its drive: that of
// Wine's link to the drive, and Sysroot itself.
func (f *Finder) windowsDirs(drive string) (list []string) {
	if drive != "" && f.Drives != "" {
		list = append(list, path.Join(f.Drives, drive))
	}
	if drive != "" && f.root() != "/" { // it may be the directory of Wine's drives
		list = append(list, "/dosdevices/"+drive)
	}
	return append(list, "")
}

// eachWindowsPlace is eachPlace for a path of Windows, with its drive apart.
func (f *Finder) eachWindowsPlace(drive, slashed, entry string, yield func(place) bool) bool {
	for _, dir := range f.windowsDirs(drive) {
		if dir != "" && !f.hasDir(dir) {
			continue
		}
		p := f.rootPlace(f.inRightCase(dir + slashed))
		p.entry = entry
		if !yield(p) {
			return false
		}
	}
	base := path.Base(slashed)
	if base == "/" {
		return true
	}
	for _, dir := range f.Folders {
		file := filepath.Join(dir, base)
		if names := f.folder(dir).byName[strings.ToLower(base)]; len(names) > 0 && !slices.Contains(names, base) {
			file = filepath.Join(dir, names[0])
		}
		if !yield(place{file: file, entry: entry}) {
			return false
		}
	}
	return true
}

// inRightCase returns a path beneath Sysroot in the case of the file system; components that do not
// exist stay as they are.
func (f *Finder) inRightCase(slashed string) string {
	root, err := openRoot(f.root())
	if err != nil {
		return slashed
	}
	defer closeRoot(root)
	right, rest := "", strings.TrimPrefix(slashed, "/")
	for range maxWindowsDepth {
		component, more, isMore := strings.Cut(rest, "/")
		names := f.namesIn(root, right+"/")
		if names == nil {
			break
		}
		if actual, ok := names[component]; ok {
			component = actual
		} else if actual, ok := names[strings.ToLower(component)]; ok {
			component = actual
		}
		right, rest = right+"/"+component, more
		if !isMore {
			return right
		}
	}
	return right + "/" + rest
}

// hasDir reports whether Sysroot has a directory. It is looked for once.
func (f *Finder) hasDir(dir string) bool {
	root, err := openRoot(f.root())
	if err != nil {
		return false
	}
	defer closeRoot(root)
	return f.namesIn(root, dir+"/") != nil
}

// maxWindowsDepth is how many nested directories are searched for the case of names.
const maxWindowsDepth = 64

// namesIn returns the names in a directory beneath Sysroot, as they are and in lower case. A
// directory is listed once; links do not lead out of Sysroot.
func (f *Finder) namesIn(root rootDir, dir string) map[string]string {
	foldersMu.Lock()
	defer foldersMu.Unlock()
	if names, ok := f.rightCase[dir]; ok {
		return names
	}
	if f.rightCase == nil {
		f.rightCase = map[string]map[string]string{}
	}
	var names map[string]string
	if list := listIn(root, dir); list != nil {
		names = make(map[string]string, len(list))
		for _, name := range list {
			names[name] = name
		}
		for _, name := range list {
			if lower := strings.ToLower(name); names[lower] == "" {
				names[lower] = name
			}
		}
	}
	f.rightCase[dir] = names
	return names
}
