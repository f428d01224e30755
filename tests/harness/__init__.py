# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: a daemon of their own each, and a client that says exactly what it is told."""
