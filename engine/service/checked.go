// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/host"
)

// This file has files from elsewhere checked by processes of their own, before workers get them.

// checked is a Remote whose files have the build IDs by which they were asked for. One that has
// another is removed from where the Remote keeps it, so that it is fetched anew.
type checked struct {
	server *Server
	remote object.Remote
}

// checkedKinds maps the kinds of files that are found by build ID.
var checkedKinds = map[object.RemoteKind]string{
	object.RemoteExecutable: objects.Executable, object.RemoteDebuginfo: objects.DebugInfo, object.RemotePDB: objects.DebugInfo,
}

// checkPatience bounds the time of checking a file.
const checkPatience = time.Minute

// Fetch implements object.Remote.
func (c checked) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	path, tried = c.remote.Fetch(f)
	kind, isByID := checkedKinds[f.Kind]
	if path == "" || !isByID {
		return path, tried
	}
	err := c.server.checkPath(path, f.BuildID, kind)
	if err == nil {
		return path, tried
	}
	var wrong *fleet.WrongFile
	if errors.As(err, &wrong) {
		_ = os.Remove(path)
	}
	return "", append(tried, object.Attempt{Path: "a server", Reason: err.Error(), Kind: object.Mismatched})
}

// soundPaths are the files that were checked.
type soundPaths struct {
	mu    sync.Mutex
	files map[soundPath]bool
}

// soundPath is a file as it was checked.
type soundPath struct {
	inode    uint64
	size     int64
	modified time.Time
	what     string // its build ID and kind
}

// maxSoundPaths bounds the files that are remembered.
const maxSoundPaths = 1 << 16

// checkPath is checkFile for a path, once for each file.
func (s *Server) checkPath(path string, id []byte, kind string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	inode, _ := host.Inode(info)
	is := soundPath{inode, info.Size(), info.ModTime(), hex.EncodeToString(id) + kind}
	s.sound.mu.Lock()
	known := s.sound.files[is]
	s.sound.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkPatience)
	defer cancel()
	if err := s.checkFile(ctx, f, id, kind); err != nil {
		return err
	}
	s.sound.mu.Lock()
	defer s.sound.mu.Unlock()
	if s.sound.files == nil || len(s.sound.files) >= maxSoundPaths {
		s.sound.files = map[soundPath]bool{}
	}
	s.sound.files[is] = true
	return nil
}

// checkFile implements fleet.Check. A process of its own reads the file.
func (s *Server) checkFile(ctx context.Context, f *os.File, id []byte, kind string) error {
	o, err := s.checks.Do(ctx, &worker.Request{Job: &job.Job{Identify: &job.Identify{}}, Input: f, Name: unnamedObject, Output: nothing{}})
	var failure *worker.Failure
	switch {
	case errors.As(err, &failure) && slices.Contains(faultsOfFiles, failure.Kind):
		return &fleet.WrongFile{Reason: failure.Detail}
	case err != nil:
		return err
	case o.Object == nil:
		return errUnidentified
	case o.Object.BuildID != hex.EncodeToString(id):
		return &fleet.WrongFile{Reason: fmt.Sprintf("the file has build ID %.200s, expected %x", o.Object.BuildID, id)}
	case kind == objects.Executable && o.Object.IsDebugFile:
		return &fleet.WrongFile{Reason: fmt.Sprintf("the file of build ID %x is a debug file, and has no code", id)}
	}
	return nil
}

// faultsOfFiles are the failures of reading a file that come again with it.
var faultsOfFiles = []worker.Kind{worker.Input, worker.Crashed, worker.TimedOut}

// nothing takes the report of a job that has none.
type nothing struct{}

// Write implements io.Writer.
func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// Restart implements worker.Output.
func (nothing) Restart() bool { return true }
