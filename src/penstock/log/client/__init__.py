"""Producers and consumers, sync and asyncio."""
