// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// interpreter is a build of CPython that is on this machine.
type interpreter struct {
	name    string   // "3.14d-sid"
	version string   // "3.14"
	argv    []string // how it is started
	env     []string
	include []string // folders of its headers
	library string   // libpython, "": it has none
	loader  []string // how a program with its library is started; none: by itself
	isDebug bool
	isFree  bool // it has no GIL
	modules string
	peers   string // the folder that has what fetch.sh fetches; "": none
	reason  string // why it cannot be executed
}

//go:embed fetch.sh
var fetchScript string

// fetched has fetch.sh fetch interpreters and peers, and returns the folder that has them.
func fetched() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unwindd-peers", "cpython")
	if out, err := exec.Command("bash", "-c", fetchScript, "fetch.sh", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		fmt.Print("left out: ", line)
	}
	return dir, err
}

// interpreters lists the interpreters of this machine and the ones that are fetched.
func interpreters(isQuick bool) (list []*interpreter, err error) {
	if i := installed(); i != nil {
		list = append(list, i)
	}
	if isQuick {
		if len(list) == 0 {
			return nil, fmt.Errorf("/usr/bin/python3 is not installed")
		}
		return list, nil
	}
	list = append(list, besideHome()...)
	dir, err := fetched()
	if err != nil {
		if os.Getenv("CI") == "true" {
			return nil, err
		}
		fmt.Println("left out, because they cannot be fetched: interpreters of other suites:", err)
		return list, nil
	}
	for _, suite := range []string{"bullseye", "bookworm", "trixie", "sid"} {
		list = append(list, unpacked(filepath.Join(dir, suite), suite)...)
	}
	list = append(list, built(filepath.Join(dir, "built"))...)
	for _, i := range list {
		i.peers = dir
	}
	peerFolder = dir
	return list, nil
}

// installed is Debian's interpreter of this machine.
func installed() *interpreter {
	path, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		return nil
	}
	version := strings.TrimPrefix(filepath.Base(path), "python")
	return &interpreter{name: version + "-installed", version: version, argv: []string{path}, include: []string{"/usr/include/python" + version}}
}

// besideHome are interpreters in folders of their own, each with a shared library, symbols and
// debug information, as pyenv builds them.
func besideHome() (list []*interpreter) {
	home, _ := os.UserHomeDir()
	paths, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "*", "bin", "python3.*[0-9]"))
	for _, path := range paths {
		version := strings.TrimPrefix(filepath.Base(path), "python")
		prefix := filepath.Dir(filepath.Dir(path))
		library := filepath.Join(prefix, "lib", "libpython"+version+".so.1.0")
		if version == "3.6" || version == "3.7" {
			continue // older than the versions that the plugin knows
		}
		list = append(list, &interpreter{name: version + "-shared", version: version, argv: []string{path}, include: []string{filepath.Join(prefix, "include", "python"+version)}, library: library,
			env: []string{"LD_LIBRARY_PATH=" + filepath.Join(prefix, "lib"), "PYTHONHOME=" + prefix}})
	}
	slices.SortStableFunc(list, func(a, b *interpreter) int { return len(a.version) - len(b.version) })
	return list
}

var pythonFile = regexp.MustCompile(`^python(3\.[0-9]+)(d?)$`)

// unpacked are the interpreters of a suite of Debian. They are executed by the dynamic linker and the
// libraries of that suite, so that the executable of the process is the linker.
func unpacked(root, suite string) (list []*interpreter) {
	paths, _ := filepath.Glob(filepath.Join(root, "usr", "bin", "python3.*"))
	machine := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
	libraries := machine + ":" + filepath.Join(root, "lib", "x86_64-linux-gnu")
	for _, path := range paths {
		m := pythonFile.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			continue
		}
		i := &interpreter{name: m[1] + m[2] + "-" + suite, version: m[1], isDebug: m[2] != "", env: []string{"PYTHONHOME=" + filepath.Join(root, "usr")}}
		include := filepath.Join(root, "usr", "include")
		i.include = []string{filepath.Join(include, "python"+m[1]+m[2]), include}
		if !i.isDebug {
			i.library = filepath.Join(machine, "libpython"+m[1]+".so.1.0")
		}
		if linker := filepath.Join(machine, "ld-linux-x86-64.so.2"); isFile(linker) {
			i.loader = []string{linker, "--library-path", libraries}
		} else {
			i.env = append(i.env, "LD_LIBRARY_PATH="+libraries)
		}
		i.argv = append(slices.Clone(i.loader), path)
		list = append(list, i)
	}
	return list
}

// built are interpreters that were built of Debian's sources.
func built(root string) (list []*interpreter) {
	paths, _ := filepath.Glob(filepath.Join(root, "*", "bin", "python3.*"))
	for _, path := range paths {
		m := regexp.MustCompile(`^python(3\.[0-9]+)(t?)(d?)$`).FindStringSubmatch(filepath.Base(path))
		if m == nil || m[2] == "" {
			continue
		}
		prefix := filepath.Dir(filepath.Dir(path))
		list = append(list, &interpreter{name: m[1] + m[2] + m[3] + "-built", version: m[1], isFree: true, isDebug: m[3] != "", argv: []string{path},
			include: []string{filepath.Join(prefix, "include", "python"+m[1]+m[2]+m[3])}, env: []string{"PYTHONHOME=" + prefix}})
	}
	return list
}

func isFile(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular()
}

// embedded is the program of C that executes Python.
const embedded = "embed"

// prepare compiles the extension and the program that embeds an interpreter.
func (w *work) prepare(i *interpreter) error {
	i.modules = filepath.Join(w.dir, i.name, "modules")
	if err := os.MkdirAll(i.modules, 0o700); err != nil {
		return err
	}
	flags := []string{"-O1", "-g", "-w"}
	for _, folder := range i.include {
		flags = append(flags, "-I"+folder)
	}
	if !isFile(filepath.Join(i.include[0], "Python.h")) {
		i.reason = "its headers are not here"
		return nil
	}
	extension := append(slices.Clone(flags), "-shared", "-fPIC", filepath.Join(w.data, "calls.c"), "-o", filepath.Join(i.modules, "calls.so"))
	if out, err := exec.Command("gcc", extension...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: calls.c: %w\n%s", i.name, err, out)
	}
	if i.library == "" || !isFile(i.library) {
		return nil
	}
	program := append(slices.Clone(flags), filepath.Join(w.data, "embed.c"), "-o", filepath.Join(i.modules, embedded), i.library, "-Wl,--allow-shlib-undefined", "-Wl,--unresolved-symbols=ignore-in-shared-libs")
	if out, err := exec.Command("gcc", program...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: embed.c: %w\n%s", i.name, err, out)
	}
	return nil
}

// command is how a program is executed; reason says why it cannot be.
func (w *work) command(i *interpreter, program, dir string) (argv, env []string, reason string) {
	path := w.data + ":" + i.modules
	if strings.HasPrefix(program, "numpy_") {
		numpy := filepath.Join(i.peers, "numpy-"+i.version)
		if _, err := os.Stat(numpy); i.peers == "" || err != nil {
			return nil, nil, "numpy has no wheel for it"
		}
		if i.isDebug || i.isFree {
			return nil, nil, "numpy's wheels are of other builds"
		}
		path += ":" + numpy
	}
	env = append(os.Environ(), i.env...)
	env = append(env, "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1", "TRUTH_FOLDER="+dir, "PYTHONUTF8=1", "LC_ALL=C.UTF-8")
	if i.isFree {
		env = append(env, "PYTHON_GIL=0")
	}
	if program == embedded {
		if i.library == "" || !isFile(filepath.Join(i.modules, embedded)) {
			return nil, nil, "it has no library"
		}
		return append(slices.Clone(i.loader), filepath.Join(i.modules, embedded)), env, ""
	}
	if i.reason != "" && strings.HasPrefix(program, "extension") {
		return nil, nil, i.reason
	}
	return append(slices.Clone(i.argv), filepath.Join(w.data, "programs", program+".py")), env, ""
}
