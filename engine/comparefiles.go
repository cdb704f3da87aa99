// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/internal/flightrecorder"
	"github.com/unwindd/unwindd/engine/internal/unpack"
)

// This file finds what a comparison reads: in folders and their folders, in archives, and in open files.

// maxFolders bounds how deep folders are searched.
const maxFolders = 32

// ComparedIn lists the paths of the files in a folder, and in its folders, that a comparison reads: targets as
// TargetsIn finds them, reports of `stack --format json`, parts, dumps of flight recorders, traces of Kineto, and
// archives of them. The order is that of names. others are the errors of other files, of links to folders, and of
// files and folders that cannot be read. The error is that of the folder itself.
func ComparedIn(dir string) (paths []string, others []error, err error) {
	s := &folderSearch{}
	if err := s.search(dir, maxFolders); err != nil {
		return nil, nil, err
	}
	return s.paths, s.others, nil
}

// folderSearch is a search of folders.
type folderSearch struct {
	paths  []string
	others []error
}

// search searches a folder and, down to a depth, its folders.
func (s *folderSearch) search(dir string, depth int) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range list {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		switch isFolder := err == nil && info.IsDir(); {
		case strings.HasPrefix(entry.Name(), "."):
		case isFolder && entry.Type()&fs.ModeSymlink != 0:
			s.others = append(s.others, fmt.Errorf("%s: it is a link to a folder", path)) // which may lead back
		case isFolder && depth == 0:
			s.others = append(s.others, fmt.Errorf("%s: it is in more than %d folders", path, maxFolders))
		case isFolder:
			if err := s.search(path, depth-1); err != nil {
				s.others = append(s.others, err)
			}
		case err != nil:
			s.others = append(s.others, err)
		case info.Mode().IsRegular():
			if err := comparedIn(path); err != nil {
				s.others = append(s.others, err)
				continue
			}
			s.paths = append(s.paths, path)
		}
	}
	return nil
}

// comparedIn returns nil for the path of a file that a comparison reads, else why it does not.
func comparedIn(path string) error {
	if IsArchive(path) {
		return nil
	}
	err := targetIn(path)
	if !errors.Is(err, ErrUnknownTarget) {
		return err
	}
	head, headErr := unpack.HeadOf(path, textHead)
	if headErr == nil && isComparedText(head) {
		return nil
	}
	return err
}

// IsArchive reports whether a file is an archive of many files: tar, which may be packed, or ZIP. A snapshot is none.
func IsArchive(path string) bool { return unpack.IsArchiveFile(path) }

// textHead is how many bytes at the start of JSON tell what it is of.
const textHead = 4096

// comparedMembers are the names of members, at the start of JSON, of the files that a comparison reads: reports of
// `stack --format json`, and traces of Kineto.
var comparedMembers = []string{"target", "distributedInfo", "traceEvents"}

// isComparedText reports whether a part, or JSON that a comparison reads, begins with some bytes.
func isComparedText(head []byte) bool {
	if comparison.IsPart(head) || flightrecorder.Accepts(head) {
		return true
	}
	for _, name := range comparedMembers {
		if isJSON(head) && bytes.Contains(head, []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}

// PassedOver is called with the reason why a file is not read, whose error names it. It is called by several
// goroutines.
type PassedOver func(err error)

// AddFile adds an open file, as AddPaths does: a regular file or a pipe, which is read to its end. Of an
// archive, each member is added that a comparison reads, by the archive's name and its own. name is the file's
// name. The error is of ctx alone.
func (c *Comparer) AddFile(ctx context.Context, f *os.File, name string, over PassedOver) error {
	in, err := unpack.Read(f, name, c.engine.unpacking())
	if err != nil {
		c.AddUnread(name, err)
		return ctx.Err()
	}
	err = guarded(func() error {
		if data := in.Mapping.Data(); unpack.IsArchive(data) {
			defer in.Mapping.Close()
			err := c.addMembers(ctx, data, name, over)
			if err != nil && len(in.Problems) > 0 {
				err = fmt.Errorf("%w; %s", err, strings.Join(in.Problems, "; "))
			}
			return err
		}
		return c.addInput(ctx, in, name)
	})
	if err != nil && ctx.Err() == nil {
		c.AddUnread(name, err)
	}
	return ctx.Err()
}

// addInput adds the target or the text in an input, which it closes.
func (c *Comparer) addInput(ctx context.Context, input *unpack.Input, name string) error {
	data := input.Mapping.Data()
	if head := data[:min(len(data), textHead)]; comparison.IsPart(head) || isJSON(head) || flightrecorder.Accepts(head) {
		defer input.Mapping.Close()
		w := c.take()
		defer c.put(w)
		return c.addTextData(w, data, name)
	}
	t, err := c.engine.openInput(name, input, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	c.Add(ctx, t)
	return nil
}

// addMembers adds the members of an archive. They are unpacked one after the other, and walked by as many
// goroutines as AddPaths has.
func (c *Comparer) addMembers(ctx context.Context, data []byte, name string, over PassedOver) error {
	jobs := c.options.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	next, group := make(chan unpack.Member), sync.WaitGroup{}
	for range jobs {
		group.Go(func() {
			for m := range next {
				c.addMember(ctx, m, name+"/"+m.Name, over)
			}
		})
	}
	defer group.Wait()
	defer close(next)
	return unpack.Members(data, c.engine.unpacking(), func(m unpack.Member) error {
		select {
		case next <- m:
			return nil
		case <-ctx.Done():
			if m.File != nil {
				_ = m.File.Close()
				m.Drop()
			}
			return ctx.Err()
		}
	})
}

// addMember adds a member of an archive by a name, or passes over it.
func (c *Comparer) addMember(ctx context.Context, m unpack.Member, name string, over PassedOver) {
	if m.Err != nil {
		c.AddUnread(name, m.Err)
		return
	}
	defer m.Drop()
	defer m.File.Close()
	in, err := unpack.Read(m.File, name, c.engine.unpacking())
	if err != nil {
		c.AddUnread(name, err)
		return
	}
	err = guarded(func() error {
		data := in.Mapping.Data()
		if head := data[:min(len(data), textHead)]; isJSON(head) && !isComparedText(head) {
			defer in.Mapping.Close()
			return fmt.Errorf("%s: %w", name, ErrUnknownTarget)
		}
		return c.addInput(ctx, in, name)
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrUnknownTarget):
		over(err)
	default:
		c.AddUnread(name, err)
	}
}

// IsPart reports whether a file is a part of a comparison.
func IsPart(path string) bool {
	head, err := unpack.Head(path)
	return err == nil && comparison.IsPart(head)
}

// AddUnread adds a target that the caller could not read, with the reason.
func (c *Comparer) AddUnread(path string, err error) {
	w := c.take()
	defer c.put(w)
	w.part.Add(c.unread(path, err))
}

// withOwn returns labels, and before them the ones that CompareOptions.Own has for a path or for its archive.
func (c *Comparer) withOwn(path string, labels map[string]string) map[string]string {
	for rest := path; len(c.options.Own) > 0; {
		if own, ok := c.options.Own[rest]; ok {
			all := maps.Clone(own)
			for name, value := range labels {
				if _, isThere := own[name]; !isThere {
					all[name] = value
				}
			}
			return all
		}
		i := strings.LastIndexByte(rest, '/')
		if i < 0 {
			break
		}
		rest = rest[:i]
	}
	return labels
}
