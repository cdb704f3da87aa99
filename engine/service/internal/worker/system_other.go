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
func ownSession() *syscall.SysProcAttr     { return nil }
func ignoreLargeFiles()                    {}
