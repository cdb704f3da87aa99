// SPDX-License-Identifier: Apache-2.0

package main

import "errors"

func (w *work) valuesAll() error { return errors.New("none") }
