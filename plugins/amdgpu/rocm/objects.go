// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

const (
	maxObjects = 1 << 16
	maxURI     = 1 << 13

	// The versions of the runtime's debug interface that are known.
	oldestVersion = 8
	newestVersion = 12
)

// readRuntime reads the version of the runtime's debug interface and the list of
// the code objects that it has loaded (struct r_debug and struct link_map).
func (r *reader) readRuntime(ctx context.Context) {
	r.version = newestVersion
	version, err := r.memory.uint32(ctx, r.note.debug)
	if r.note.debug == 0 {
		err = errors.New("the note does not say where it is")
	}
	if err != nil {
		r.problems.add("the runtime's list of code objects could not be read, and its version is taken for %d: %v; "+
			"it is in the core of the process, which a core of its own goes with", r.version, err)
		return
	}
	r.version = min(max(version, oldestVersion), newestVersion)
	if version != r.version {
		r.problems.add("the runtime's debug interface has version %d, expected %d to %d: it is read like %d",
			version, oldestVersion, newestVersion, r.version)
	}
	if state, err := r.memory.uint32(ctx, r.note.debug+24); err == nil && state != 0 {
		r.problems.add("the runtime was about to change its list of code objects: some may be missing")
	}
	if err := r.readObjects(ctx); err != nil {
		r.problems.add("the runtime's list of code objects, after %d of them: %v", len(r.answer.Objects), err)
	}
}

func (r *reader) readObjects(ctx context.Context) error {
	address, err := r.memory.uint64(ctx, r.note.debug+8)
	seen := map[uint64]bool{}
	for ; err == nil && address != 0; address, err = r.memory.uint64(ctx, address+24) {
		switch {
		case seen[address]:
			return fmt.Errorf("the entry at %#x follows itself", address)
		case len(seen) == maxObjects:
			return fmt.Errorf("there are more than %d", maxObjects)
		}
		seen[address] = true
		bias, err := r.memory.uint64(ctx, address)
		if err != nil {
			return err
		}
		name, err := r.memory.uint64(ctx, address+8)
		if err != nil {
			return err
		}
		uri, err := r.memory.text(ctx, name, maxURI)
		if err != nil {
			r.problems.add("the name of the code object loaded at %#x could not be read: %v", bias, err)
			continue
		}
		o, err := parseURI(uri)
		if err != nil {
			r.problems.add("the code object loaded at %#x: %v: it is left out", bias, err)
			continue
		}
		o.Bias = bias
		r.answer.Objects = append(r.answer.Objects, o)
	}
	return err
}

// parseURI returns the object that a URI of the runtime names: a part of a file,
// or bytes in the memory of the process ("Code Object Uniform Resource
// Identifier (URI)").
func parseURI(uri string) (sdk.TargetObject, error) {
	o := sdk.TargetObject{URI: uri}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || !utf8.ValidString(uri) {
		return o, fmt.Errorf("its name is %.200q, expected file:// or memory://", uri)
	}
	path, parameters := rest, ""
	if i := strings.IndexAny(rest, "#?"); i >= 0 {
		path, parameters = rest[:i], rest[i+1:]
	}
	var offset, size uint64
	for part := range strings.SplitSeq(parameters, "&") {
		name, value, _ := strings.Cut(part, "=")
		number, err := strconv.ParseUint(value, 0, 63)
		switch {
		case part == "":
		case err != nil:
			return o, fmt.Errorf("%.200q: %s is %.40q, expected a number", uri, name, value)
		case name == "offset":
			offset = number
		case name == "size":
			size = number
		}
	}
	o.Size = size
	switch scheme {
	case "file":
		p, err := url.PathUnescape(path)
		if err != nil || p == "" || !utf8.ValidString(p) {
			return o, fmt.Errorf("%.200q names no file", uri)
		}
		o.Path, o.Offset = p, offset
		if offset > 1<<62 || size > 1<<62 {
			return o, fmt.Errorf("%.200q reaches past the end of any file", uri)
		}
	case "memory":
		o.MemoryAddress = offset
		if size == 0 {
			return o, fmt.Errorf("%.200q does not say what size it has", uri)
		}
	default:
		return o, fmt.Errorf("%.200q: expected file:// or memory://", uri)
	}
	return o, nil
}
