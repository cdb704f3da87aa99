// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/internal/host"
)

// runPrefix begins the names of the folders of running servers.
const runPrefix = "s-"

// claimRun makes a folder for this server in the folder of all servers of its user, and
// removes the folders of dead servers: a live server has a lock on its folder, which ends
// with its process. end removes the folder.
func claimRun(all string) (dir string, end func(), err error) {
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", nil, err
	}
	// Servers that start at the same time take turns.
	turn, err := locked(all, true)
	if err != nil {
		return "", nil, err
	}
	defer turn.Close()
	if err := removeLeft(all); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(all, runPrefix+strings.ToLower(rand.Text()[:4])) // short: paths of sockets are bounded
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := locked(dir, false)
	if err != nil {
		return "", nil, err
	}
	return dir, func() { _ = errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// removeLeft removes the folders of servers that are gone.
func removeLeft(all string) error {
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), runPrefix) {
			continue
		}
		dir := filepath.Join(all, e.Name())
		lock, err := locked(dir, false)
		if err != nil {
			continue // its server lives
		}
		err = os.RemoveAll(dir)
		_ = lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// locked locks a folder, until the file that it returns is closed, and waits for that if it is to.
func locked(dir string, waits bool) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := host.Lock(f, waits); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return f, nil
}
