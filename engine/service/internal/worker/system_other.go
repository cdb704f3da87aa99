// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package worker

import (
	"errors"
	"os"
	"syscall"
)

// Workers are confined, and run on Linux alone: service.New makes no pool of them here.

const (
	cutFlags   = 0
	rightsSize = 0
)

func rightsOf([]*os.File) []byte           { return nil }
func received([]byte) []*os.File           { return nil }
func socketPair() (*conn, *os.File, error) { return nil, nil, errors.ErrUnsupported }
func killAll(*os.Process)                  {}
func ownSession() *syscall.SysProcAttr     { return nil }

// There are no control groups here.
type (
	groups struct{}
	group  struct{}
)

func delegated() (*groups, error)                 { return nil, errors.ErrUnsupported }
func (*groups) start(int, uint64) (*group, error) { return nil, nil }
func (*group) isOver() bool                       { return false }
func (*group) remove()                            {}
func ignoreLargeFiles()                           {}
func lowerPriority(int) error                     { return errors.ErrUnsupported }
func raisePriority(int) error                     { return errors.ErrUnsupported }
