"""Speaks with a node of this process as others do on the bus: by the names of its topics and services."""

from __future__ import annotations

from typing import Any


def subscription_of(node: Any, topic: str) -> Any:
    """What the node hears a topic with; names are relative to the node's namespace, `~` stands for its own name."""
    name = node.resolve_topic_name(topic)
    return next(each for each in node.subscriptions if each.topic_name == name)


def give(node: Any, topic: str, message: Any) -> None:
    """Hand a message over as if it had come from the bus."""
    subscription_of(node, topic).callback(message)


def ask(node: Any, service: str, request: Any = None) -> Any:
    """Call a service; returns its answer, of one that answers later the coroutine that does."""
    name = node.resolve_service_name(service)
    called = next(each for each in node.services if node.resolve_service_name(each.srv_name) == name)
    return called.callback(called.srv_type.Request() if request is None else request, called.srv_type.Response())


def published_by(node: Any, topic: str) -> list[Any]:
    """What the node publishes on a topic from now on, instead of publishing it; as if somebody listened."""
    name = node.resolve_topic_name(topic)
    publisher = next(each for each in node.publishers if each.topic_name == name)
    messages: list[Any] = []
    publisher.publish, publisher.get_subscription_count = messages.append, lambda: 1
    return messages
