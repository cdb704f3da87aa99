// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine/internal/beside"
	"github.com/unwindd/unwindd/engine/internal/target/elfcore"
	"github.com/unwindd/unwindd/engine/internal/target/joined"
	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file joins to a process the state that its accelerators left in a core of their own, which is
// made of sections and has nothing of the process. (Cores of accelerators that are made of segments
// share their memory with the core of the process, and are read by elfcore.) Which files belong
// together follows from the process ID and the time in their names, and from the threads that
// launched.

// maxDevicesTried bounds the cores of accelerators beside a process that are opened.
const maxDevicesTried = 4

// withDevices returns a process with the state of its accelerators: that of Options.DeviceCore, or
// of a file beside the target, if that is of the process. Where there is none it returns host. The
// problems tell why a file was not used.
func (e *Engine) withDevices(host target.Target) (state target.Target, problems []string) {
	if path := e.options.DeviceCore; path != "" {
		return e.withNamedDevices(host, path)
	}
	if e.options.IsUnseen || hasWaves(host) {
		return host, nil
	}
	for _, f := range e.devicesBeside(host.Info(), host.Threads()) {
		devices, packing, err := e.openDevices(f.Path)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%v: no state of accelerators is read from it", err))
			continue
		}
		stray := strayDevices(host, devices)
		if stray == "" {
			return joined.New(host, devices, e.finderOf(host)), packing
		}
		_ = devices.Close()
		problems = append(problems, fmt.Sprintf("%s: %s: it is not used; --gpu-core uses it", f.Path, stray))
	}
	return host, problems
}

// hasWaves reports whether a thread of a target is a wave.
func hasWaves(t target.Target) bool {
	for th := range target.ThreadsOf(t).Kinds() {
		if th.Wave != nil {
			return true
		}
	}
	return false
}

// withNamedDevices is withDevices of a file that the user named.
func (e *Engine) withNamedDevices(host target.Target, path string) (state target.Target, problems []string) {
	if !isOfSections(path) {
		if _, isCore := host.(*elfcore.Core); isCore {
			return host, nil // it read the file, or says why not
		}
		return host, []string{path + ", given as the core of accelerators, is not made of sections: such a core goes with that of its process alone"}
	}
	devices, problems, err := e.openDevices(path)
	if err != nil {
		return host, []string{fmt.Sprintf("%v: no state of accelerators is read from it", err)}
	}
	if stray := strayDevices(host, devices); stray != "" {
		problems = append(problems, fmt.Sprintf("%s: %s: it may be of another one", path, stray))
	}
	return joined.New(host, devices, e.finderOf(host)), problems
}

// openDevices opens a core of accelerators.
func (e *Engine) openDevices(path string) (devices target.Target, problems []string, err error) {
	m, problems, err := e.mapPacked(path)
	if err != nil {
		return nil, nil, err
	}
	devices, err = orNil(elfcore.OpenMapped(m, e.coreOptions(path)))
	return devices, problems, err
}

// strayDevices returns why the state of accelerators may not be of a process; "" if it is.
func strayDevices(host, devices target.Target) string {
	launchers := joined.Launchers(devices)
	if len(launchers) == 0 {
		return ""
	}
	ids := joined.HostThreads(host)
	for id := range launchers {
		if ids[id] != "" {
			return ""
		}
	}
	return "none of the threads that launched its waves is in the process"
}

// devicesBeside lists the cores of accelerators beside a target whose names have the ID of the process,
// or are the target's with .gpu, those first that were written next to the target.
func (e *Engine) devicesBeside(info trace.Target, threads []*trace.Thread) []beside.File {
	if info.Facts == nil || info.Facts.Process.ID == 0 || info.Path == "" || info.Kind == trace.LiveProcess {
		return nil
	}
	process := &info.Facts.Process
	ids := []int64{process.ID}
	for _, th := range threads { // the process may have had another ID in its namespace
		if th.OwnID != 0 && th.ID == strconv.FormatInt(process.ID, 10) {
			ids = append(ids, th.OwnID)
		}
	}
	moment := process.Kept
	if moment.IsZero() {
		moment = beside.Written(info.Path)
	}
	list := e.devices.Files(filepath.Dir(info.Path), moment, func(name string, numbers []int64) bool {
		return name == filepath.Base(info.Path)+".gpu" ||
			name != filepath.Base(info.Path) && slices.ContainsFunc(ids, func(id int64) bool { return slices.Contains(numbers, id) })
	})
	list = slices.DeleteFunc(list, func(f beside.File) bool {
		// An earlier process may have had the ID.
		return !process.Created.IsZero() && f.Written.Before(process.Created.Add(-time.Second)) || !isOfSections(f.Path)
	})
	return list[:min(len(list), maxDevicesTried)]
}

// isOfSections reports whether a file is a core of accelerators.
func isOfSections(path string) bool {
	head, err := unpack.Head(path)
	return err == nil && elfcore.IsOfSections(head)
}

// openOfSections opens a core of accelerators, with the core of its process if that lies beside it.
func (e *Engine) openOfSections(m *object.Mapping) (target.Target, error) {
	path := m.Path()
	devices, err := elfcore.OpenMapped(m, e.coreOptions(path))
	if err != nil {
		return nil, err
	}
	if e.options.IsUnseen {
		return devices, nil
	}
	for _, f := range hostsBeside(path, joined.Launchers(devices)) {
		host, err := elfcore.Open(f.Path, e.coreOptions(f.Path))
		if err != nil {
			continue // an unrelated file of that name
		}
		if strayDevices(host, devices) == "" {
			return joined.New(host, devices, e.Finder(f.Path)), nil
		}
		_ = host.Close()
	}
	return devices, nil
}

// hostsBeside lists the cores of processes beside a core of accelerators, whose process IDs are in
// its name or among its launchers, those first that were written next to it.
func hostsBeside(path string, launchers map[string]bool) []beside.File {
	ids := beside.Numbers(filepath.Base(path))
	for id := range launchers {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			ids = append(ids, n)
		}
	}
	list := beside.Files(filepath.Dir(path), beside.Written(path), func(name string, numbers []int64) bool {
		return name != filepath.Base(path) &&
			(name == "core" || name+".gpu" == filepath.Base(path) || slices.ContainsFunc(numbers, func(n int64) bool { return slices.Contains(ids, n) }))
	})
	return slices.DeleteFunc(list, func(f beside.File) bool {
		head, err := unpack.Head(f.Path)
		if err != nil || !elfcore.IsCore(head) || elfcore.IsOfSections(head) {
			return true
		}
		pid, ok := elfcore.ProcessOf(f.Path)
		return !ok || !slices.Contains(ids, pid) && f.Path+".gpu" != path
	})
}

// hostBeside returns the path of the core of a process that lies beside the core of its accelerators;
// "" if there is none, or path is no core of accelerators.
func hostBeside(path string) string {
	if host := elfcore.HostCore(path); host != "" {
		return host
	}
	if isOfSections(path) {
		if list := hostsBeside(path, nil); len(list) > 0 {
			return list[0].Path
		}
	}
	return ""
}
